/* How far independent work of one kind speeds up with threads on this machine. Prints the seconds that it takes.
 *
 *     cc -O3 -march=native -ffast-math -pthread scaling.c -o scaling && ./scaling compute 2 && ./scaling memory 2
 *
 * compute: flooding on binary grids of 28 x 28 (the loop of limit.c), each in the cache of its thread.
 * memory:  the triad a = b + 3 c over arrays that are far larger than the caches.
 * Total work does not depend on the number of threads; each has an equal part, which it also allocates and fills. */
#define main limit_main
#include "limit.c"
#undef main
#include <pthread.h>

enum { SIDE = 28, SWEEPS = 400000, TRIADS = 12 };
static const long LENGTH = 3L << 23; /* numbers in an array, of all threads: 200 MB */

static int threads, memory;
static pthread_barrier_t ready, done;

static void *floods(void *unused) {
    int n = SIDE * SIDE;
    double *u = malloc(n * sizeof *u), *a[4], *b[4];
    for (int v = 0; v < n; v++) u[v] = 0.3 + 0.4 * (v % 7) / 7;
    for (int d = 0; d < 4; d++) {
        a[d] = malloc(n * sizeof(double));
        b[d] = malloc(n * sizeof(double));
        for (int v = 0; v < n; v++) a[d][v] = b[d][v] = 0.5;
    }
    pthread_barrier_wait(&ready);
    for (int s = 0; s < SWEEPS / threads; s += 2) {
        sweep(SIDE, u, a, b, 1.3, 0.7);
        sweep(SIDE, u, b, a, 1.3, 0.7);
    }
    pthread_barrier_wait(&done);
    return unused;
}

static void *triads(void *unused) {
    long n = LENGTH / threads;
    double *a = malloc(n * sizeof *a), *b = malloc(n * sizeof *b), *c = malloc(n * sizeof *c);
    for (long v = 0; v < n; v++) a[v] = 0, b[v] = v, c[v] = 1;
    pthread_barrier_wait(&ready);
    for (int t = 0; t < TRIADS; t++) {
        for (long v = 0; v < n; v++) a[v] = b[v] + 3 * c[v];
        double *old = a;
        a = b, b = c, c = old;
    }
    pthread_barrier_wait(&done);
    free(a), free(b), free(c);
    return unused;
}

static double wall(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc < 3) return 1;
    memory = strcmp(argv[1], "memory") == 0;
    threads = atoi(argv[2]);
    pthread_t *others = malloc(threads * sizeof *others);
    pthread_barrier_init(&ready, NULL, threads + 1);
    pthread_barrier_init(&done, NULL, threads + 1);
    for (int i = 0; i < threads; i++) pthread_create(others + i, NULL, memory ? triads : floods, NULL);
    pthread_barrier_wait(&ready);
    double start = wall();
    pthread_barrier_wait(&done);
    double seconds = wall() - start;
    for (int i = 0; i < threads; i++) pthread_join(others[i], NULL);
    printf("%.6f %.3f\n", seconds, memory ? 24e-9 * (LENGTH / threads * threads) * TRIADS / seconds : 0.0);
    return 0;
}
