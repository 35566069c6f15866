#include "engine/shim/task_limits.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::engine {

namespace {

TEST(ResourceLimits, AreLoweredAndNeverRaised) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool set = set_resource_limits({.open_files = 50, .file_bytes = 4096}) &&
                     set_resource_limits({.open_files = 60});
    rlimit files{};
    rlimit size{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    ::getrlimit(RLIMIT_FSIZE, &size);
    ::_exit(set && files.rlim_max == 50 && files.rlim_cur == 50 && size.rlim_cur == 4096 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(ResourceLimits, IncludeTheNiceValue) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int before = ::getpriority(PRIO_PROCESS, 0);
    const bool same = set_resource_limits({}) && ::getpriority(PRIO_PROCESS, 0) == before;
    ::_exit(same && set_resource_limits({.niceness = 19}) && ::getpriority(PRIO_PROCESS, 0) == 19
                ? 0
                : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(BoundCpus, AreThoseOfTheProcessAndItsChildren) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) last = cpu;
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const bool bound = bool{set_resource_limits({.cpus = {last}})};
    cpu_set_t now;
    ::sched_getaffinity(0, sizeof now, &now);
    ::_exit(bound && CPU_COUNT(&now) == 1 && CPU_ISSET(last, &now) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace

}  // namespace muster::engine
