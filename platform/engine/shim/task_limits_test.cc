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

TEST(ResourceLimits, HoldWhereTheCpusOfTheTaskAreMissing) {
  const pid_t child = ::fork();
  if (child == 0) {
    const TaskLimits limits{.file_bytes = 1 << 20, .cpus = {1023}, .niceness = 19};
    const bool limited = bool{set_resource_limits(limits)};
    const bool bound = bool{set_cpus_and_niceness(limits)};
    rlimit size{};
    ::getrlimit(RLIMIT_FSIZE, &size);
    ::_exit(limited && !bound && size.rlim_cur == 1 << 20 && ::getpriority(PRIO_PROCESS, 0) == 19
                ? 0
                : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(NiceValue, IsLoweredOnRequest) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int before = ::getpriority(PRIO_PROCESS, 0);
    const bool same = set_cpus_and_niceness({}) && ::getpriority(PRIO_PROCESS, 0) == before;
    ::_exit(same && set_cpus_and_niceness({.niceness = 19}) && ::getpriority(PRIO_PROCESS, 0) == 19
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
    const bool bound = bool{set_cpus_and_niceness({.cpus = {last}})};
    cpu_set_t now;
    ::sched_getaffinity(0, sizeof now, &now);
    ::_exit(bound && CPU_COUNT(&now) == 1 && CPU_ISSET(last, &now) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(BoundCpus, CanBeLeftOutOfTheGroupsOfATask) {
  const TaskGroup memory{.folder = "/memory/t", .home = "/", .settings = {{"memory.max", "1"}}};
  const TaskGroup cpus{.folder = "/cpuset/t",
                       .home = "/",
                       .settings = {{"../cgroup.subtree_control", "+cpuset"},
                                    {"../cpuset.cpus", "0-3"},
                                    {"cpuset.cpus", "2"}}};
  TaskGroup all = memory;
  all.settings.emplace_back("cpuset.cpus", "2");

  EXPECT_EQ(without_cpus({memory, cpus}), std::vector<TaskGroup>{memory});
  EXPECT_EQ(without_cpus({all}), std::vector<TaskGroup>{memory});
}

}  // namespace

}  // namespace muster::engine
