/* Preloaded into a job: every fsync after the first SLOW_AFTER ones takes SLOW_SECONDS longer, as on a disk that hangs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static int calls;

int fsync(int file) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  const char *after = getenv("SLOW_AFTER"), *seconds = getenv("SLOW_SECONDS");
  if (after && seconds && ++calls > atoi(after)) sleep((unsigned)atoi(seconds));
  return real(file);
}
