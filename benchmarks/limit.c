/* What a plain loop can do: flooding belief propagation on a binary grid with one shared 2 x 2 table, two-state
 * messages, no tape, no residual. Prints the milliseconds of a sweep, the median of several.
 *
 *     cc -O3 -march=native -ffast-math limit.c -o limit && ./limit 300
 *
 * A message is kept as its entry for state 1 (entries sum to one). in[d][v] is the message into site v from its
 * neighbour in direction d (left, right, up, down); all are computed from the old ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e3 * t.tv_sec + 1e-6 * t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The message that a site sends on, given the products of the other messages for states 0 and 1. */
static inline double send(double p0, double p1, double same, double other) {
    double to0 = same * p0 + other * p1, to1 = other * p0 + same * p1;
    return to1 / (to0 + to1);
}

/* One direction for a run of sites: out[i + step] from the unary, the two crossing messages and the one from behind. */
static inline void pass(int first, int last, int step, const double *restrict u, const double *restrict x,
                        const double *restrict y, const double *restrict behind, double *restrict out, double same,
                        double other) {
    for (int v = first; v < last; v++) {
        double p1 = u[v] * x[v] * y[v] * behind[v];
        double p0 = (1 - u[v]) * (1 - x[v]) * (1 - y[v]) * (1 - behind[v]);
        out[v + step] = send(p0, p1, same, other);
    }
}

static void sweep(int side, const double *u, double **in, double **out, double same, double other) {
    for (int r = 0; r < side; r++) {
        int v = r * side, end = v + side;
        pass(v, end - 1, 1, u, in[2], in[3], in[0], out[0], same, other);
        pass(v + 1, end, -1, u, in[2], in[3], in[1], out[1], same, other);
        if (r + 1 < side) pass(v, end, side, u, in[0], in[1], in[2], out[2], same, other);
        if (r > 0) pass(v, end, -side, u, in[0], in[1], in[3], out[3], same, other);
    }
}

int main(int argc, char **argv) {
    int side = argc > 1 ? atoi(argv[1]) : 300, n = side * side, runs = 15, sweeps = 20;
    double *u = malloc(n * sizeof *u), *a[4], *b[4], times[15], sum = 0;
    srand(1);
    for (int v = 0; v < n; v++) u[v] = 0.05 + 0.9 * rand() / RAND_MAX;
    for (int d = 0; d < 4; d++) {
        a[d] = malloc(n * sizeof(double));
        b[d] = malloc(n * sizeof(double));
        for (int v = 0; v < n; v++) a[d][v] = b[d][v] = 0.5;
    }
    for (int run = 0; run < runs; run++) {
        double start = now();
        for (int s = 0; s < sweeps; s += 2) {
            sweep(side, u, a, b, 1.3, 0.7);
            sweep(side, u, b, a, 1.3, 0.7);
        }
        times[run] = (now() - start) / sweeps;
    }
    for (int v = 0; v < n; v++) sum += a[0][v];
    qsort(times, runs, sizeof *times, ascending);
    printf("%.4f\n", times[runs / 2]);
    fprintf(stderr, "checksum %.12g\n", sum);
    return 0;
}
