/* Preloaded into a job: every fsync after the first SLOW_AFTER ones takes SLOW_SECONDS longer, as on a disk that hangs;
   with SLOW_NAME only that of files which have it in their name. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int calls;

static int is_slow(int file) {
  const char *name = getenv("SLOW_NAME");
  char link[64], path[4096] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  if (name && readlink(link, path, sizeof path - 1) < 0) return 0;
  return !name || strstr(path, name);
}

int fsync(int file) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  const char *after = getenv("SLOW_AFTER"), *seconds = getenv("SLOW_SECONDS");
  if (after && seconds && is_slow(file) && ++calls > atoi(after)) sleep((unsigned)atoi(seconds));
  return real(file);
}
