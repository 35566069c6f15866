#include "engine/shim/sampler.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "engine/shim/test_idle_process.h"
#include "engine/test_metrics.h"

namespace muster::engine {

namespace {

using base::UniqueFd;

// --- GPUs

constexpr const char* kTwoAtWork =
    "A100|1000|GPU-a|400|97|250500|61\n"
    "A100|1000|GPU-b|100|50|100250|70\n"
    "A100|1000|GPU-c|0|3|50000|30";

class GpuUsageTest : public testing::Test {
 protected:
  ~GpuUsageTest() override { ::unsetenv("FAKE_NVML"); }

  static MetricValues look(const std::string& script, const std::vector<std::string>& names,
                           const std::string& library = MUSTER_FAKE_NVML) {
    ::setenv("FAKE_NVML", script.c_str(), 1);
    return GpuUsage(library, names).look();
  }
};

TEST_F(GpuUsageTest, AddsUpTheNamedGpusAndTakesTheHottest) {
  const MetricValues expected{{"gpu_percent", 147},
                              {"gpu_memory_bytes", 500},
                              {"gpu_memory_free_bytes", 1500},
                              {"gpu_power_watts", 350.75},
                              {"gpu_temperature_celsius", 70}};

  EXPECT_EQ(look(kTwoAtWork, {"0", "1"}), expected);
  EXPECT_EQ(look(kTwoAtWork, {"GPU-b", "GPU-a"}), expected);
}

TEST_F(GpuUsageTest, LeavesOutValuesThatAGpuDoesNotReport) {
  EXPECT_EQ(look("T4|1000|GPU-a|400|||\nT4||GPU-b||20||", {"0", "1"}),
            (MetricValues{
                {"gpu_percent", 20}, {"gpu_memory_bytes", 400}, {"gpu_memory_free_bytes", 600}}));
}

TEST_F(GpuUsageTest, IgnoresAMissingGpu) {
  EXPECT_EQ(look("T4|||||7|\nlost", {"0", "1", "2", "GPU-x"}),
            (MetricValues{{"gpu_power_watts", 0.007}}));
}

TEST_F(GpuUsageTest, IsEmptyWithoutGpusLibraryOrDriver) {
  EXPECT_EQ(look(kTwoAtWork, {}), MetricValues{});
  EXPECT_EQ(look(kTwoAtWork, {"0"}, "/no/such/libnvidia-ml.so.1"), MetricValues{});
  EXPECT_EQ(look(kTwoAtWork, {"0"}, MUSTER_FAKE_NVML_INCOMPLETE), MetricValues{});
  EXPECT_EQ(look("no-driver", {"0"}), MetricValues{});
}

// --- TCP

using Sockets = std::vector<TcpSocket>;

class Looking : public testing::Test {
 protected:
  Traffic look(const Sockets& sockets, const std::set<uint64_t>& own) {
    return usage_.count(usage_.own_of(sockets, [&] {
      ++asked_;
      return own;
    }));
  }

  SocketUsage usage_;
  int asked_ = 0;
};

TEST_F(Looking, CountsBytesOfTheTasksSocketsSinceTheLastLook) {
  EXPECT_EQ(look({{.cookie = 1, .inode = 11, .sent = 10, .received = 5},
                  {.cookie = 2, .inode = 22, .sent = 1000, .received = 1000}},
                 {11}),
            (Traffic{.sent = 10, .received = 5}));
  EXPECT_EQ(look({{.cookie = 1, .inode = 11, .sent = 17, .received = 5},
                  {.cookie = 2, .inode = 22, .sent = 9000, .received = 9000}},
                 {11}),
            (Traffic{.sent = 7, .received = 0}));
}

TEST_F(Looking, ReadsOwnersOnlyIfThereAreOtherSockets) {
  const Sockets sockets{{.cookie = 1, .inode = 11}, {.cookie = 2, .inode = 22}};
  look(sockets, {11, 22});
  look(sockets, {11, 22});
  EXPECT_EQ(asked_, 1);

  look({{.cookie = 1, .inode = 11}, {.cookie = 3, .inode = 33}}, {11, 33});
  EXPECT_EQ(asked_, 2);
}

TEST_F(Looking, HasSocketsUntilTheLastOneIsGone) {
  EXPECT_FALSE(usage_.has_sockets());
  look({{.cookie = 1, .inode = 11}, {.cookie = 2, .inode = 22}}, {11});
  EXPECT_TRUE(usage_.has_sockets());
  look({{.cookie = 2, .inode = 22}}, {11});
  EXPECT_FALSE(usage_.has_sockets());
}

TEST_F(Looking, AClosedSocketSubtractsNothing) {
  look({{.cookie = 1, .inode = 11, .sent = 100}, {.cookie = 2, .inode = 12, .sent = 100}},
       {11, 12});

  EXPECT_EQ(look({{.cookie = 2, .inode = 12, .sent = 101}}, {12}), (Traffic{.sent = 1}));
  EXPECT_EQ(look({}, {}), Traffic{});
}

TEST_F(Looking, AReusedInodeIsAnotherSocket) {
  look({{.cookie = 1, .inode = 11, .sent = 100}}, {11});

  EXPECT_EQ(look({{.cookie = 9, .inode = 11, .sent = 30}}, {11}), (Traffic{.sent = 30}));
}

TEST_F(Looking, CountersThatDecreaseCountAsZero) {
  look({{.cookie = 1, .inode = 11, .sent = 100, .received = 100}}, {11});

  EXPECT_EQ(look({{.cookie = 1, .inode = 11, .sent = 50, .received = 120}}, {11}),
            (Traffic{.sent = 0, .received = 20}));
}

TEST_F(Looking, AConnectionCountsOnceItIsAccepted) {
  EXPECT_EQ(look({{.cookie = 1, .inode = 0, .received = 10}}, {}), Traffic{});
  EXPECT_EQ(look({{.cookie = 1, .inode = 11, .received = 30}}, {11}), (Traffic{.received = 30}));
  // A closed socket that still sends its remaining bytes.
  EXPECT_EQ(look({{.cookie = 1, .inode = 0, .sent = 5, .received = 30}}, {}), (Traffic{.sent = 5}));
}

/// Both ends of a connection over loopback.
struct Connection {
  UniqueFd here;
  UniqueFd there;
};

Connection connect_to_self() {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener.get(), generic, size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener.get(), generic, &size), 0);
  Connection connection{.here = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
                        .there = {}};
  EXPECT_EQ(::connect(connection.here.get(), generic, size), 0);
  connection.there = UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  return connection;
}

uint64_t inode_of(const UniqueFd& socket) {
  struct stat facts{};
  EXPECT_EQ(::fstat(socket.get(), &facts), 0);
  return facts.st_ino;
}

TEST(TcpSockets, ReportTheBytesOfBothEndsOfAConnection) {
  const Connection connection = connect_to_self();
  const std::string bytes(5000, 'x');
  ASSERT_EQ(::send(connection.here.get(), bytes.data(), bytes.size(), 0), 5000);
  std::string received(5000, '\0');
  ASSERT_EQ(::recv(connection.there.get(), received.data(), received.size(), MSG_WAITALL), 5000);

  const auto sockets = tcp_sockets();

  ASSERT_TRUE(sockets) << "the kernel reports no sockets";
  int found = 0;
  for (const TcpSocket& socket : *sockets) {
    if (socket.inode == inode_of(connection.here)) {
      ++found;
      EXPECT_NEAR(static_cast<double>(socket.sent), 5000, 1);  // the kernel counts its SYN
    } else if (socket.inode == inode_of(connection.there)) {
      ++found;
      EXPECT_EQ(socket.received, 5000U);
    }
  }
  EXPECT_EQ(found, 2);
}

TEST(SocketInodes, AreReadFromTheDescriptorsOfProcesses) {
  const Connection connection = connect_to_self();

  const auto inodes = socket_inodes({::getpid(), 0x7fffffff});

  EXPECT_EQ(inodes.count(inode_of(connection.here)), 1U);
  EXPECT_EQ(inodes.count(inode_of(connection.there)), 1U);
}

TEST(MayHaveTcp, IsTrueForOpenTcpSocketsOnly) {
  std::array<int, 2> local{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, local.data()), 0);
  const UniqueFd here(local[0]);
  const UniqueFd there(local[1]);
  EXPECT_FALSE(may_have_tcp({::getpid(), 0x7fffffff}));

  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_TRUE(may_have_tcp({::getpid()}));
}

TEST(MayHaveTcp, IsTrueForProcessesWithManyDescriptors) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<UniqueFd> files;
  for (int i = 0; i < 1001; ++i) files.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(files.back());

  EXPECT_TRUE(may_have_tcp({::getpid()}));
}

// --- the sampler

TEST(SlowLook, SurvivesThePipe) {
  for (const SlowLook& look :
       {SlowLook{}, SlowLook{.memory = {{42, 1234567890123}, {43, 0}}, .sockets = {}},
        SlowLook{.memory = {}, .sockets = Sockets{}},
        SlowLook{.memory = {{1, 2}},
                 .sockets = Sockets{{.cookie = ~uint64_t{0}, .inode = 7, .sent = 8, .received = 9},
                                    {.cookie = 2}}}}) {
    EXPECT_EQ(decode_slow_look(encode(look)), look);
  }
}

TEST(SlowLook, IsNothingWithoutItsEnd) {
  const std::string text = encode(SlowLook{.memory = {{42, 5}}, .sockets = Sockets{{.cookie = 1}}});
  for (size_t length = 0; length + 1 < text.size(); ++length) {
    EXPECT_FALSE(decode_slow_look(text.substr(0, length))) << length;
  }
}

class Sampling : public testing::Test {
 protected:
  bool begin(std::chrono::seconds after) { return sampler_.begin(base::Time{}, kStart + after); }

  double value(const MetricSample& sample, std::string_view name) {
    for (const auto& [each, value] : sample.values) {
      if (each == name) return value;
    }
    ADD_FAILURE() << "no " << name;
    return -1;
  }

  static constexpr Sampler::Steady::time_point kStart{};
  IdleProcess task_;
  Sampler sampler_{::getpid(), 0, kStart};
};

TEST_F(Sampling, AnIdleTaskNeedsNoSlowLookAfterTheFirst) {
  ASSERT_TRUE(begin(std::chrono::seconds(1)));
  const MetricSample first = sampler_.finish(sampler_.look_slowly());
  EXPECT_GT(value(first, "memory_bytes"), 0);

  EXPECT_FALSE(begin(std::chrono::seconds(2)));
  const MetricSample second = sampler_.finish(std::nullopt);
  EXPECT_EQ(value(second, "memory_bytes"), value(first, "memory_bytes"));
  EXPECT_EQ(second.values.size(), first.values.size());
}

TEST_F(Sampling, AnotherProcessNeedsASlowLook) {
  ASSERT_TRUE(begin(std::chrono::seconds(1)));
  const double alone = value(sampler_.finish(sampler_.look_slowly()), "memory_bytes");

  const IdleProcess another;
  EXPECT_TRUE(begin(std::chrono::seconds(2)));
  EXPECT_GT(value(sampler_.finish(sampler_.look_slowly()), "memory_bytes"), alone);
}

TEST_F(Sampling, ASampleCoversTheTimeOfOneThatFailed) {
  ASSERT_TRUE(begin(std::chrono::seconds(1)));
  sampler_.finish(sampler_.look_slowly());
  const Connection connection = connect_to_self();
  const IdleProcess another;
  ASSERT_EQ(::send(connection.here.get(), "12345678", 8, 0), 8);
  ASSERT_TRUE(begin(std::chrono::seconds(2)));  // its slow look brings nothing

  ASSERT_TRUE(begin(std::chrono::seconds(5)));
  const MetricSample sample = sampler_.finish(sampler_.look_slowly());

  EXPECT_NEAR(value(sample, "network_received_bytes_per_second"), 8 / 4.0, 0.01);
}

TEST_F(Sampling, ConnectionsNeedASlowLookUntilOneFindsThemClosed) {
  ASSERT_TRUE(begin(std::chrono::seconds(1)));
  sampler_.finish(sampler_.look_slowly());
  std::optional<Connection> connection = connect_to_self();
  std::optional<IdleProcess> holder(std::in_place);
  connection.reset();

  for (const int second : {2, 3}) {
    EXPECT_TRUE(begin(std::chrono::seconds(second)));
    sampler_.finish(sampler_.look_slowly());
  }
  holder.reset();
  EXPECT_TRUE(begin(std::chrono::seconds(4)));
  sampler_.finish(sampler_.look_slowly());
  EXPECT_FALSE(begin(std::chrono::seconds(5)));
}

TEST(SamplerPlan, SurvivesConversionToArguments) {
  const SamplerPlan plan{
      .shim = 42,
      .started = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(123456789012345)),
      .interval = std::chrono::seconds(10),
      .nvml = "libnvidia-ml.so.1",
      .gpus = {"0", "GPU-1"}};

  const auto read = read_sampler_plan(arguments_of(plan));

  ASSERT_TRUE(read);
  EXPECT_EQ(*read, plan);
}

TEST(SamplerPlan, RejectsOtherArguments) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"1"},
                                             {"1", "2", "3"},
                                             {"x", "2", "3", ""},
                                             {"1", "x", "3", ""},
                                             {"1", "2", "0", ""},
                                             {"1", "2", "-1", ""},
                                             {"", "", "", ""}}) {
    EXPECT_FALSE(read_sampler_plan(arguments));
  }
}

}  // namespace

}  // namespace muster::engine
