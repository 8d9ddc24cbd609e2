/* What a plain loop can do: Gibbs sweeps of one chain of a binary grid with own couplings (or one for all), site after
 * site. Prints the milliseconds of a sweep, the median of several.
 *
 *     cc -O3 -march=native -ffast-math gibbs.c -lm -o gibbs && ./gibbs 300
 *
 * Spins are -1 and +1; a border of zeros stands for missing neighbours. Random numbers: SplitMix64. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

static uint64_t state = 1;

static inline double uniform(void) {
    uint64_t z = (state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return ((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* right[v] couples v with v + 1, down[v] with the site below; rows have side + 2 sites. */
static void sweep(int side, const double *field, const double *right, const double *down, int8_t *s) {
    int width = side + 2;
    for (int r = 1; r <= side; r++)
        for (int v = r * width + 1; v <= r * width + side; v++) {
            double h = field[v] + right[v] * s[v + 1] + right[v - 1] * s[v - 1] + down[v] * s[v + width] +
                       down[v - width] * s[v - width];
            s[v] = uniform() * (1 + exp(-2 * h)) < 1 ? 1 : -1;
        }
}

static double normal(void) { return sqrt(-2 * log(uniform() + 1e-300)) * cos(6.283185307179586 * uniform()); }

int main(int argc, char **argv) {
    int side = argc > 1 ? atoi(argv[1]) : 300, width = side + 2, n = width * width, runs = 15, sweeps = 20;
    double *field = calloc(n, sizeof *field), *right = calloc(n, sizeof *right), *down = calloc(n, sizeof *down);
    int8_t *s = calloc(n, 1);
    double times[15];
    long total = 0;
    for (int v = 0; v < n; v++) field[v] = 0.3 * normal(), right[v] = 0.5 * normal(), down[v] = 0.5 * normal();
    for (int r = 1; r <= side; r++)
        for (int c = 1; c <= side; c++) s[r * width + c] = 1;
    for (int run = 0; run < runs; run++) {
        double start = now();
        for (int k = 0; k < sweeps; k++) sweep(side, field, right, down, s);
        times[run] = (now() - start) / sweeps;
    }
    for (int v = 0; v < n; v++) total += s[v];
    qsort(times, runs, sizeof *times, ascending);
    printf("%.6f\n", times[runs / 2]);
    fprintf(stderr, "%ld\n", total); /* so that nothing is left out */
    return 0;
}
