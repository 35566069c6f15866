// Thousands of worlds in a row, worlds that are killed, worlds that strangers connect to, and
// worlds on other processors.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <muster/collective/testing/leaks.h>
#include <muster/collective/testing/spawn_ranks.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <thread>

#include "muster/collective/communicator.h"

namespace muster::collective {
namespace {

using std::chrono::milliseconds;
using testing::entries_in;
using testing::on_threads;
using testing::Placement;
using testing::spawn_ranks;
using testing::world_of;

// --- leaks

// A sanitizer makes worlds slow, and maps memory of its own at run time.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

// A thread that was joined may be listed for a moment longer.
std::ptrdiff_t threads_once_they_are(std::ptrdiff_t expected) {
  const auto give_up = std::chrono::steady_clock::now() + testing::kPatience;
  std::ptrdiff_t threads = entries_in("/proc/self/task");
  while (threads != expected && std::chrono::steady_clock::now() < give_up) {
    std::this_thread::yield();
    threads = entries_in("/proc/self/task");
  }
  return threads;
}

int mappings() {
  std::ifstream maps("/proc/self/maps");
  int lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

class Leaks : public ::testing::TestWithParam<Placement> {};

INSTANTIATE_TEST_SUITE_P(Over, Leaks,
                         ::testing::Values(Placement::one_host(), Placement::host_each()),
                         [](const auto& placement) {
                           return placement.param.ranks_per_host == 1 ? "Tcp" : "SharedMemory";
                         });

TEST_P(Leaks, DoNotAriseInAThousandWorlds) {
  // The ranks are two threads that stay: memory that malloc keeps for each thread does not count.
  const auto live = [&](int worlds) {
    std::vector<std::vector<Options>> options;
    for (int i = 0; i < worlds; ++i) {
      options.push_back(world_of(2, testing::kPatience, GetParam()));
    }
    on_threads(2, [&](int rank) {
      for (const std::vector<Options>& world : options) {
        Result<Communicator> communicator =
            Communicator::connect(world[static_cast<std::size_t>(rank)]);
        ASSERT_TRUE(communicator) << communicator.error().to_string();
        int one = 1;
        ASSERT_TRUE(communicator->all_reduce(&one, 1, ReduceOp::kSum));
        ASSERT_EQ(one, 2);
      }
    });
  };
  // The first worlds may load modules that stay: random numbers, the name service.
  live(20);
  const std::ptrdiff_t descriptors = entries_in("/proc/self/fd");
  const std::ptrdiff_t threads = threads_once_they_are(1);
  const int mapped = mappings();
  for (int i = 0; i < (kIsSanitized ? 1 : 10); ++i) live(100);
  EXPECT_EQ(entries_in("/proc/self/fd"), descriptors);
  EXPECT_EQ(threads_once_they_are(threads), threads);
  // Those of malloc come and go; one that each world leaves would be a thousand.
  constexpr int kOfMalloc = 20;
  const int now = mappings();
  EXPECT_TRUE(kIsSanitized || now - mapped < kOfMalloc) << now << ", there were " << mapped;
}

// --- ranks that are killed

// A folder that is removed with everything in it.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "luck-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "cannot create " << pattern;
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A rank as srun would start it, with a runtime folder of its own. Writes a byte to `done` after
// its first call, and continues until it is killed.
[[noreturn]] void run_rank(int rank, int size, const std::filesystem::path& folder, int done) {
  const std::map<std::string, std::string> environment = {{"SLURM_PROCID", std::to_string(rank)},
                                                          {"SLURM_NTASKS", std::to_string(size)},
                                                          {"SLURM_JOB_ID", "1"},
                                                          {"SLURM_STEP_ID", "0"},
                                                          {"SLURM_STEP_NUM_NODES", "1"},
                                                          {"XDG_RUNTIME_DIR", folder.string()}};
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  const Result<Options> options = bootstrap_from_environment();
  if (!options) ::_exit(1);
  Result<Communicator> world = Communicator::connect(*options);
  std::vector<float> values(1'000'000, 1);
  while (world && world->all_reduce(values.data(), values.size(), ReduceOp::kAverage)) {
    if (done >= 0 && ::write(done, "x", 1) != 1) break;
    done = -1;
  }
  ::_exit(1);
}

// The files below /dev/shm that a process has mapped or open.
std::vector<std::string> files_in_dev_shm(pid_t process) {
  const std::filesystem::path root = "/proc/" + std::to_string(process);
  std::vector<std::string> found;
  std::ifstream maps(root / "maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(" /dev/shm/") != std::string::npos) found.push_back(line);
  }
  for (const auto& entry : std::filesystem::directory_iterator(root / "fd")) {
    std::error_code ignored;
    const std::string target = std::filesystem::read_symlink(entry, ignored).string();
    if (target.starts_with("/dev/shm/")) found.push_back(target);
  }
  return found;
}

TEST(KillingAllRanks, InTheMiddleOfAnAllReduceLeavesNoFileBehind) {
  constexpr int kRanks = 3;
  const Folder folder;
  std::array<int, 2> pipe = {};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) run_rank(rank, kRanks, folder.path(), pipe[1]);
    ranks.push_back(child);
    // A process group of their own, so that one signal reaches all: no rank lives to see another
    // die.
    ASSERT_EQ(::setpgid(child, ranks.front()), 0);
  }
  ::close(pipe[1]);
  for (int i = 0; i < kRanks; ++i) {
    pollfd entry = {pipe[0], POLLIN, 0};
    char byte = 0;
    EXPECT_EQ(::poll(&entry, 1, static_cast<int>(testing::kPatience.count())), 1);
    EXPECT_EQ(::read(pipe[0], &byte, 1), 1) << "a rank did not finish its first call";
  }
  ::close(pipe[0]);

  // The shared memory has no name while the ranks work, so no file can remain.
  for (const pid_t rank : ranks) {
    EXPECT_EQ(files_in_dev_shm(rank), std::vector<std::string>());
  }
  EXPECT_EQ(::kill(-ranks.front(), SIGKILL), 0);
  for (const pid_t rank : ranks) {
    int status = 0;
    ::waitpid(rank, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "the rank had ended before";
  }
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "muster-collective"));
  EXPECT_EQ(entries_in(folder.path() / "muster-collective"), 0);
}

// --- strangers at the rendezvous

TEST(AWrongKey, IsReportedAtOnceAndKeepsNoRankOut) {
  const std::vector<Options> world = world_of(2);
  Options wrong = world[1];
  wrong.key = "ffffffffffffffffffffffffffffffff";
  on_threads(2, [&](int rank) {
    if (rank == 1) {
      for (int i = 0; i < 3; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        const Result<Communicator> refused = Communicator::connect(wrong);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, ErrorCode::kAuthentication) << refused.error().to_string();
        EXPECT_LT(std::chrono::steady_clock::now() - begin, testing::kPatience / 2);
      }
    }
    Result<Communicator> communicator =
        Communicator::connect(world[static_cast<std::size_t>(rank)]);
    ASSERT_TRUE(communicator) << communicator.error().to_string();
    EXPECT_TRUE(communicator->barrier());
  });
}

TEST(AWrongKey, OfRank0IsAnErrorOnEveryRank) {
  std::vector<Options> world = world_of(3, milliseconds(5000));
  world[0].key = "ffffffffffffffffffffffffffffffff";
  on_threads(3, [&](int rank) {
    const Result<Communicator> refused =
        Communicator::connect(world[static_cast<std::size_t>(rank)]);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, rank == 0 ? ErrorCode::kTimeout : ErrorCode::kAuthentication)
        << refused.error().to_string();
  });
}

// A connection to the rendezvous that belongs to no rank. It may still be pending.
class Stranger {
 public:
  explicit Stranger(const std::string& endpoint) {
    const std::size_t colon = endpoint.rfind(':');
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(colon + 1))));
    EXPECT_EQ(::inet_pton(AF_INET, endpoint.substr(0, colon).c_str(), &address.sin_addr), 1);
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    EXPECT_GE(socket_, 0);
    sockaddr generic = {};
    std::memcpy(&generic, &address, sizeof generic);
    // The connection is pending, or the listener has just been closed.
    [[maybe_unused]] const int outcome = ::connect(socket_, &generic, sizeof generic);
  }
  ~Stranger() { ::close(socket_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  void send(std::string_view text) const {
    static_cast<void>(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL));
  }

 private:
  int socket_;
};

TEST(AThousandStrangers, AtTheRendezvousKeepNoRankOut) {
  const std::vector<Options> world = world_of(3);
  const std::string endpoint = world[0].rendezvous;
  const std::array<std::string, 4> greetings = {
      "GET / HTTP/1.1\r\n\r\n", std::string(5000, '\xff'), "MUSTERCO",
      // The most that a stranger can send: an opening, and an introduction without the key.
      std::string("MUSTERCO\2\0\1\0", 12) + std::string(1000, 'x')};
  // These connections stay open, and send nothing, or a little.
  std::vector<std::unique_ptr<Stranger>> staying;
  for (std::size_t i = 0; i < 400; ++i) {
    staying.push_back(std::make_unique<Stranger>(endpoint));
    if (i % 2 == 1) staying.back()->send(greetings[i / 2 % greetings.size()]);
  }
  // The other connections are closed while the ranks join.
  std::atomic<int> joined = 0;
  std::atomic<int> hung_up = 0;
  on_threads(4, [&](int thread) {
    if (thread == 3) {
      for (std::size_t i = 0; joined < 3 && i < 100'000; ++i) {
        Stranger(endpoint).send(greetings[i % greetings.size()]);
        ++hung_up;
        hung_up.notify_all();
      }
      return;
    }
    // Rank 2 comes last, when many connections have come and gone.
    for (int seen = hung_up; thread == 2 && seen < 600; seen = hung_up) hung_up.wait(seen);
    Result<Communicator> communicator =
        Communicator::connect(world[static_cast<std::size_t>(thread)]);
    ++joined;
    ASSERT_TRUE(communicator) << communicator.error().to_string();
    EXPECT_TRUE(communicator->barrier());
  });
}

// --- processors

std::uint64_t mixed(std::uint64_t hash, const void* data, std::size_t bytes) {
  // FNV-1a.
  const auto* const at = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ at[i]) * 0x100000001b3U;
  return hash;
}

// Finite values of very different magnitudes: another order of additions, or one rounding less,
// changes the result.
double varied_value(int rank, std::size_t i) {
  return std::exp(8 * std::sin(static_cast<double>(i) * (rank + 1))) * (i % 3 == 0 ? -1 : 1);
}

template <typename T>
std::uint64_t digest_of(Communicator& world, std::size_t count, const Reduction& reduction) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double value = varied_value(world.rank(), i);
    if constexpr (std::is_same_v<T, BFloat16>) {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
      values[i].bits = static_cast<std::uint16_t>(bits >> 16U);
    } else {
      values[i] = static_cast<T>(value);
    }
  }
  EXPECT_TRUE(world.all_reduce(values.data(), count, reduction));
  return mixed(0xcbf29ce484222325U, values.data(), count * sizeof(T));
}

// The next test runs this test in a process for each instruction set, and reads its output.
TEST(InstructionSets, GiveTheSameBitsToEveryRank) {
  std::array<std::uint64_t, 3> digests = {};
  spawn_ranks(3, [&](Communicator& world) {
    std::uint64_t& digest = digests[static_cast<std::size_t>(world.rank())];
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage, ReduceOp::kMax,
                              ReduceOp::kProduct, ReduceOp::kAdasum}) {
      for (const std::size_t count : {7, 1009, 300'007}) {
        for (const double scale : {1.0, 0.3}) {
          const Reduction reduction(op, scale, 1 / scale);
          digest = digest * 31 + digest_of<float>(world, count, reduction);
          digest = digest * 31 + digest_of<double>(world, count, reduction);
          digest = digest * 31 + digest_of<BFloat16>(world, count, reduction);
        }
      }
    }
  });
  EXPECT_EQ(digests[1], digests[0]);
  EXPECT_EQ(digests[2], digests[0]);
  std::printf("digest %016llx\n", static_cast<unsigned long long>(digests[0]));
}

std::string digest_with(const std::string& isa) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "MUSTER_COLLECTIVE_ISA=" + isa + " '" + self +
                              "' --gtest_filter=InstructionSets.GiveTheSameBitsToEveryRank";
  std::FILE* const output = ::popen(command.c_str(), "r");
  if (output == nullptr) return "";
  std::string digest;
  std::array<char, 256> line = {};
  while (std::fgets(line.data(), line.size(), output) != nullptr) {
    if (std::string_view(line.data()).starts_with("digest ")) digest = line.data();
  }
  return ::pclose(output) == 0 ? digest : "";
}

TEST(InstructionSets, AllGiveTheSameBits) {
  const std::string scalar = digest_with("scalar");
  ASSERT_NE(scalar, "");
  for (const char* const isa : {"sse", "avx2", "avx512"})
    EXPECT_EQ(digest_with(isa), scalar) << isa;
}

}  // namespace
}  // namespace muster::collective
