#include "engine/shim/sampler.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <numeric>
#include <string>

#include "base/unique_fd.h"
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
    return usage_.look(sockets, [&] {
      ++asked_;
      return own;
    });
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

TEST_F(Looking, ReadsOwnersOnlyForNewSockets) {
  const Sockets sockets{{.cookie = 1, .inode = 11}, {.cookie = 2, .inode = 22}};
  look(sockets, {11});
  look(sockets, {11});
  EXPECT_EQ(asked_, 1);

  look({{.cookie = 1, .inode = 11}, {.cookie = 3, .inode = 33}}, {11, 33});
  EXPECT_EQ(asked_, 2);
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

// --- the sampler

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
