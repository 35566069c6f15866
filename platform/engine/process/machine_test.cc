#include "engine/process/machine.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <thread>

#include "engine/host_facts.h"

namespace muster::engine {

namespace {

// --- CPUs and memory

/// Restricts the calling thread to one CPU while this object exists.
class OnOneCpu {
 public:
  OnOneCpu() {
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
      if (CPU_ISSET(cpu, &before_)) CPU_SET(cpu, &one);
    }
    ::sched_setaffinity(0, sizeof one, &one);
  }
  ~OnOneCpu() { ::sched_setaffinity(0, sizeof before_, &before_); }
  OnOneCpu(const OnOneCpu&) = delete;
  OnOneCpu& operator=(const OnOneCpu&) = delete;

 private:
  cpu_set_t before_;
};

TEST(ThisMachine, HasNoMoreThanThisProcessMayUse) {
  const Machine machine = this_machine();

  EXPECT_GT(machine.cpu_milli, 0);
  EXPECT_LE(machine.cpu_milli, 1000LL * std::thread::hardware_concurrency());
  EXPECT_GT(machine.memory_bytes, 0);
  EXPECT_LE(machine.memory_bytes, int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE));
}

TEST(ThisMachine, HasOneCpuForAProcessThatIsBoundToOne) {
  const OnOneCpu bound;

  EXPECT_LE(this_machine().cpu_milli, 1000);
}

TEST(ThisMachine, NamesTheCpusOfThisProcessAsTheKernelDoes) {
  cpu_set_t usable;
  ASSERT_EQ(::sched_getaffinity(0, sizeof usable, &usable), 0);

  const std::vector<Cpu> cpus = this_machine().cpus;

  EXPECT_EQ(static_cast<int>(cpus.size()), CPU_COUNT(&usable));
  for (const Cpu& cpu : cpus) EXPECT_TRUE(CPU_ISSET(cpu.number, &usable)) << cpu.number;
}

TEST(ThisMachine, HasLabelsForItsLayout) {
  const auto labels = this_machine().labels;

  // Labels of sockets and cores are absent if the kernel does not report them.
  ASSERT_EQ(labels.count("numa.nodes"), 1U);
  for (const char* name : {"numa.nodes", "cpu.sockets", "cpu.cores"}) {
    if (labels.count(name) > 0) {
      EXPECT_GT(std::stoi(labels.at(name)), 0) << name;
    }
  }
}

TEST(ThisMachine, LeavesTheAffinityOfThisProcessAsItWas) {
  const OnOneCpu bound;
  cpu_set_t before;
  ::sched_getaffinity(0, sizeof before, &before);

  this_machine();

  cpu_set_t after;
  ::sched_getaffinity(0, sizeof after, &after);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

// --- the node

TEST(ThisNode, OffersTheResourcesOfTheMachine) {
  const Node node = this_node({});

  EXPECT_EQ(node.name, host_name());
  EXPECT_EQ(node.pool, "default");
  EXPECT_EQ(node.task_slots, 256);
  EXPECT_GT(node.cpu_milli, 0);
  EXPECT_GT(node.memory_bytes, 0);
  EXPECT_EQ(node.labels.count("numa.nodes"), 1U);
}

TEST(ThisNode, OffersTheDeclaredGpus) {
  const Node node = this_node(
      {.declared_gpus = DeclaredGpus{.count = 8, .model = "A100", .memory_bytes = 1 << 30}});

  EXPECT_EQ(node.gpus, 8);
  EXPECT_EQ(node.gpu_model, "A100");
  EXPECT_EQ(node.gpu_memory_bytes, 1 << 30);
  EXPECT_TRUE(node.gpu_names.empty());
}

TEST(ThisNode, HasTheDeclaredPoolAndRack) {
  const Node node = this_node({.node_pool = "a100",
                               .topology = {{"rack", "r1"}},
                               .labels = {{"numa.nodes", "said"}, {"owner", "ada"}}});

  EXPECT_EQ(node.pool, "a100");
  EXPECT_EQ(node.topology.at("rack"), "r1");
  EXPECT_EQ(node.labels.at("owner"), "ada");
  EXPECT_EQ(node.labels.at("numa.nodes"), "said");
}

}  // namespace

}  // namespace muster::engine
