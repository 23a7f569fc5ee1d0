/* Preloaded into a job: the wall clock jumps by a day, forwards or backwards, every second; the monotonic one does not. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

static int (*real)(clockid_t, struct timespec *);

static int read_clock(clockid_t clock, struct timespec *now) {
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  return real(clock, now);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  struct timespec since_boot;
  int failed = read_clock(clock, now);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
    read_clock(CLOCK_MONOTONIC, &since_boot);
    now->tv_sec += 86400 * (since_boot.tv_sec % 3 - 1);
  }
  return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
  struct timespec precise;
  (void)zone;
  int failed = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return failed;
}

time_t time(time_t *now) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (now) *now = precise.tv_sec;
  return precise.tv_sec;
}
