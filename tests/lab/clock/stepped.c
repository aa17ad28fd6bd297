/* A wall clock that can be stepped while a program runs; monotonic clocks go on.

   To be preloaded. MOORINGS_TEST_CLOCK names a file of eight bytes: by how many
   seconds the wall clock is ahead. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *ahead_s;
static int (*real_clock)(clockid_t, struct timespec *);
static int (*real_day)(struct timeval *, void *);

static void find_real(void) {
  if (real_clock == NULL) {
    real_day = (int (*)(struct timeval *, void *))dlsym(RTLD_NEXT, "gettimeofday");
    real_clock =
        (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  }
}

__attribute__((constructor)) static void map_file(void) {
  find_real();
  const char *name = getenv("MOORINGS_TEST_CLOCK");
  int file = name == NULL ? -1 : open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return;
  }
  void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (mapped != MAP_FAILED) {
    ahead_s = mapped;
  }
}

static time_t ahead(void) { return ahead_s == NULL ? 0 : (time_t)*ahead_s; }

int clock_gettime(clockid_t clock, struct timespec *now) {
  find_real();
  int failed = real_clock(clock, now);
  if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    now->tv_sec += ahead();
  }
  return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  find_real();
  int failed = real_day(now, zone);
  if (!failed) {
    now->tv_sec += ahead();
  }
  return failed;
}

time_t time(time_t *into) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (into != NULL) {
    *into = now.tv_sec;
  }
  return now.tv_sec;
}
