// A world of many light ranks on this machine: how long they take to join, what each of them
// occupies, and how long all others take to name a rank that is killed.
//
//   ranks RANKS HOSTS     256 1: one host. 1024 8: eight hosts, which speak TCP over loopback.
//
// Each rank is a forked process without a framework. All of them wait for a gate, so that the time
// to join contains no fork. After joining they meet in a barrier and measure themselves. Then all
// ranks but one enter a second barrier, and that one is killed. Every other rank must return from
// the barrier with an error that names it.
//
// The memory of a rank is the growth of its own pages, and its part of the memory that the ranks
// share and of what the kernel keeps for them: sockets (slab), page tables and stacks. The last two
// are differences of the whole machine, which other programs disturb.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "muster/collective/communicator.h"

namespace {

using muster::collective::Communicator;
using muster::collective::Options;
using muster::collective::Result;
using muster::collective::Status;
using Clock = std::chrono::steady_clock;

enum class Stage : int { kForked, kJoined, kMeasured, kWaiting, kDone };

/// What a rank reports, in memory that it shares with its parent.
struct Record {
  std::atomic<Stage> stage;
  double joined_at;  ///< seconds of the steady clock
  double named_at;
  int named;  ///< the rank in the error, -1: another outcome
  int sockets;
  long grown_kib;  ///< own pages since the fork
  std::array<char, 256> error;
};

/// Opens for all ranks at once: its other end closes, which every reader sees.
struct Gate {
  std::array<int, 2> ends = {-1, -1};

  Gate() {
    if (::pipe(ends.data()) != 0) std::perror("ranks: pipe");
  }
  ~Gate() {
    open();
    ::close(ends[0]);
  }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open() {
    if (ends[1] >= 0) ::close(std::exchange(ends[1], -1));
  }
  void pass() const {
    char byte = 0;
    while (::read(ends[0], &byte, 1) < 0) {
    }
  }
};

struct Gates {
  Gate join;
  Gate measure;  ///< all have joined
  Gate wait;     ///< all have measured themselves: enter the last barrier

  /// In a rank, which holds the writing ends too.
  void take_side() {
    for (Gate* gate : {&join, &measure, &wait}) gate->open();
  }
};

double seconds_now() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// The first number after `key` in a file like /proc/meminfo, in KiB.
long kib_of(const char* file, const std::string& key) {
  std::ifstream in(file);
  std::string word;
  while (in >> word) {
    long value = 0;
    if (word == key && in >> value) return value;
  }
  return 0;
}

/// What this process has for itself, with its share of the program's pages.
long own_kib() {
  return kib_of("/proc/self/smaps_rollup", "Pss_Anon:") +
         kib_of("/proc/self/smaps_rollup", "Pss_File:");
}

long kernel_kib() {
  return kib_of("/proc/meminfo", "Slab:") + kib_of("/proc/meminfo", "PageTables:") +
         kib_of("/proc/meminfo", "KernelStack:");
}

/// Memory that ranks share, whether they have touched it or only reserved it.
long shared_kib() {
  return kib_of("/proc/meminfo", "Shmem:");
}

int open_sockets() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (target.starts_with("socket:")) ++count;
  }
  return count;
}

struct Plan {
  int ranks;
  int hosts;
  int victim;
  std::string rendezvous;
  Gates* gates;
  Record* records;
};

[[noreturn]] void give_up(Record& record, const std::string& why) {
  std::snprintf(record.error.data(), record.error.size(), "%s", why.c_str());
  record.stage = Stage::kDone;
  std::_Exit(1);
}

[[noreturn]] void run_rank(const Plan& plan, int rank) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  plan.gates->take_side();
  Record& record = plan.records[rank];
  const long before = own_kib();
  record.stage = Stage::kForked;
  plan.gates->join.pass();

  Options options{.rank = rank, .size = plan.ranks};
  options.rendezvous_file = plan.rendezvous;
  options.host = "h" + std::to_string(rank * plan.hosts / plan.ranks);
  if (plan.hosts > 1) {
    options.host_id = options.host;
    // All of them share the processors of one machine, where an answer may take seconds.
    options.silence = std::chrono::seconds(60);
  }
  Result<Communicator> world = Communicator::connect(options);
  if (!world) give_up(record, world.error().message);
  record.joined_at = seconds_now();
  record.stage = Stage::kJoined;

  plan.gates->measure.pass();
  if (Status met = world->barrier(); !met) give_up(record, met.error().message);
  record.sockets = open_sockets();
  record.grown_kib = own_kib() - before;
  record.stage = Stage::kMeasured;

  plan.gates->wait.pass();
  record.stage = Stage::kWaiting;
  if (rank == plan.victim) {
    for (;;) ::pause();
  }
  const Status met = world->barrier();
  record.named_at = seconds_now();
  record.named = met ? -1 : met.error().rank;
  if (!met && record.named != plan.victim) give_up(record, met.error().message);
  record.stage = Stage::kDone;
  // Not the destructor: 1,024 ranks that leave at once are not what is measured.
  std::_Exit(0);
}

/// Waits until all ranks have reached `stage`. False at the time limit or when a rank has given up.
bool all_reach(const Plan& plan, Stage stage, std::chrono::seconds limit) {
  const auto until = Clock::now() + limit;
  while (Clock::now() < until) {
    bool all = true;
    for (int rank = 0; rank < plan.ranks; ++rank) {
      const Record& record = plan.records[rank];
      if (record.error[0] != 0) return false;
      if (stage == Stage::kDone && rank == plan.victim) continue;
      all = all && record.stage.load() >= stage;
    }
    if (all) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

struct Figures {
  double join_s = 0;
  double named_s = 0;
  int most_sockets = 0;
  double sockets = 0;
  double grown_kib = 0;
  double kernel_kib = 0;
  double shared_kib = 0;
  int named = 0;
};

bool measure(const Plan& plan, const std::vector<pid_t>& processes, Figures& figures) {
  using std::chrono::seconds;
  if (!all_reach(plan, Stage::kForked, seconds(60))) return false;
  const long kernel_before = kernel_kib();
  const long shared_before = shared_kib();
  const double opened = seconds_now();
  plan.gates->join.open();
  if (!all_reach(plan, Stage::kJoined, seconds(120))) return false;
  figures.shared_kib = static_cast<double>(shared_kib() - shared_before) / plan.ranks;
  figures.kernel_kib = static_cast<double>(kernel_kib() - kernel_before) / plan.ranks;
  plan.gates->measure.open();
  if (!all_reach(plan, Stage::kMeasured, seconds(60))) return false;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const Record& record = plan.records[rank];
    figures.join_s = std::max(figures.join_s, record.joined_at - opened);
    figures.most_sockets = std::max(figures.most_sockets, record.sockets);
    figures.sockets += static_cast<double>(record.sockets) / plan.ranks;
    figures.grown_kib += static_cast<double>(record.grown_kib) / plan.ranks;
  }
  plan.gates->wait.open();
  if (!all_reach(plan, Stage::kWaiting, seconds(60))) return false;
  // Long enough that the ranks wait for the last one in the barrier.
  std::this_thread::sleep_for(seconds(1));
  const double killed = seconds_now();
  ::kill(processes[static_cast<std::size_t>(plan.victim)], SIGKILL);
  if (!all_reach(plan, Stage::kDone, seconds(60))) return false;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    if (rank == plan.victim) continue;
    figures.named_s = std::max(figures.named_s, plan.records[rank].named_at - killed);
    figures.named += plan.records[rank].named == plan.victim ? 1 : 0;
  }
  return true;
}

template <typename T>
T* shared_array(std::size_t count) {
  void* const memory =
      ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<T*>(memory);
}

void raise_descriptor_limit() {
  rlimit limit = {};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int run(int ranks, int hosts) {
  Plan plan{.ranks = ranks, .hosts = hosts, .victim = ranks / 2};
  Gates gates;
  plan.gates = &gates;
  plan.records = shared_array<Record>(static_cast<std::size_t>(ranks));
  std::string folder = (std::filesystem::temp_directory_path() / "bench-scale-XXXXXX").string();
  if (plan.records == nullptr || ::mkdtemp(folder.data()) == nullptr) {
    std::perror("ranks");
    return 1;
  }
  plan.rendezvous = folder + "/rendezvous";
  raise_descriptor_limit();

  std::vector<pid_t> processes;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t process = ::fork();
    if (process == 0) run_rank(plan, rank);
    if (process < 0) std::perror("ranks: fork");
    processes.push_back(process);
  }
  Figures figures;
  const bool whole = std::ranges::count(processes, -1) == 0 && measure(plan, processes, figures);
  for (const pid_t process : processes) {
    if (process > 0) ::kill(process, SIGKILL);
  }
  for (const pid_t process : processes) {
    if (process > 0) ::waitpid(process, nullptr, 0);
  }
  std::filesystem::remove_all(folder);
  for (int rank = 0; rank < ranks && !whole; ++rank) {
    const Record& record = plan.records[rank];
    if (record.error[0] == 0) continue;
    std::fprintf(stderr, "ranks: rank %d: %s\n", rank, record.error.data());
    break;
  }
  if (!whole) {
    std::fprintf(stderr, "ranks: a world of %d on %d hosts did not complete\n", ranks, hosts);
    return 1;
  }
  std::printf("{\"join_s\": %.4f, \"named_s\": %.4f, \"named\": %d, \"sockets\": %.1f, ",
              figures.join_s, figures.named_s, figures.named, figures.sockets);
  std::printf(
      "\"most_sockets\": %d, \"grown_kib\": %.1f, \"kernel_kib\": %.1f, \"shared_kib\": %.1f}\n",
      figures.most_sockets, figures.grown_kib, figures.kernel_kib, figures.shared_kib);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: ranks RANKS HOSTS\n");
    return 2;
  }
  return run(std::atoi(argv[1]), std::atoi(argv[2]));
}
