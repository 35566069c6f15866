// A parameter server that ends, or stops answering, while its workers need it: each worker gets an
// error that names the server, and none hangs.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

#include "parameter_server/rpc/messages.h"
#include "parameter_server/rpc/test_job.h"
#include "parameter_server/rpc/test_process.h"

namespace muster::parameter_server {
namespace {

using collective::ErrorCode;
using collective::Status;
using testing::Job;
using testing::kKey;
using testing::Process;
using testing::Values;

void expect_loss(const Status& status, const Whom& whom) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kPeerLost) << status.error().to_string();
  EXPECT_EQ(status.error().rank, whom.server);
  EXPECT_EQ(status.error().host, whom.address);
  EXPECT_NE(status.error().message.find(whom.name()), std::string::npos) << status.error().message;
}

// Two servers, the second of them as a process of its own.
class LostServer : public ::testing::Test {
 protected:
  Client join() {
    ClientOptions options = job_.options(0);
    options.servers.push_back(process_.address);
    auto client = Client::connect(options);
    if (!client) throw std::runtime_error(client.error().to_string());
    EXPECT_TRUE(client->declare({{"w", {2}, Values(2)}}, Sgd{.learning_rate = 1}));
    return *std::move(client);
  }

  Whom lost() const { return {.server = 1, .address = process_.address}; }

  Process process_;
  Job job_{1, {.staleness = 0}};
};

TEST_F(LostServer, ThatIsKilledIsNamedByTheNextCall) {
  Client client = join();
  process_.kill();
  expect_loss(client.push({{"w", Values(2)}}), lost());
  Values w(2);
  EXPECT_EQ(client.pull({{"w", w}}).error().host, process_.address);
}

TEST_F(LostServer, EndsACallThatWaitsAtAnotherServer) {
  Client client = join();
  Client slow = job_.join(1);
  ASSERT_TRUE(client.push({{"w", Values(2)}}));
  std::future<Status> waiting =
      std::async(std::launch::async, [&] { return client.push({{"w", Values(2)}}); });
  testing::until_it_waits(job_.servers[0], 0);
  process_.kill();
  expect_loss(waiting.get(), lost());
}

// There is no other server: a second one in this process would have to answer in time, too, even on
// a busy machine.
TEST(SilentServer, IsDetected) {
  const Process process;
  auto client = Client::connect(
      {.servers = {process.address}, .worker = 0, .key = kKey, .silence = std::chrono::seconds(5)});
  ASSERT_TRUE(client) << client.error().to_string();
  ASSERT_TRUE(client->declare({{"w", {2}, Values(2)}}, Sgd{.learning_rate = 1}));
  process.stop();
  expect_loss(client->push({{"w", Values(2)}}), {.server = 0, .address = process.address});
}

TEST(Server, ThatIsStoppedEndsWaitingCalls) {
  Job job(1, {.staleness = 0});
  Client client = job.join(0);
  Client slow = job.join(1);
  ASSERT_TRUE(client.declare({{"w", {1}, Values(1)}}, Sgd{}));
  ASSERT_TRUE(client.push({{"w", Values(1)}}));
  std::future<Status> waiting =
      std::async(std::launch::async, [&] { return client.push({{"w", Values(1)}}); });
  testing::until_it_waits(job.servers[0], 0);
  job.servers[0].stop();
  const Status ended = waiting.get();
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kPeerLost);
  EXPECT_EQ(ended.error().host, job.addresses[0]);
  EXPECT_TRUE(job.servers[0].wait().stopped);
}

TEST(Server, EndsWhenAllWorkersHaveLeft) {
  Job job(1, {.workers = 2});
  std::future<Ending> end = std::async(std::launch::async, [&] { return job.servers[0].wait(); });
  {
    const Client lost = job.join(0);
  }
  Client polite = job.join(1);
  ASSERT_TRUE(polite.leave());
  const Ending ending = end.get();
  EXPECT_FALSE(ending.stopped);
  EXPECT_EQ(ending.left, 1U);
  EXPECT_EQ(ending.lost, 1U);
}

TEST(Server, RejectsAPortThatIsInUse) {
  const Job job(1);
  const auto second = Server::start({.address = job.addresses[0], .key = kKey});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, "the parameter server cannot listen on " + job.addresses[0]);
}

TEST(Server, RequiresAKey) {
  const auto server = Server::start({});
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code, ErrorCode::kConfiguration);
}

TEST(Server, RejectsAnInvalidSilenceLimit) {
  for (const auto silence : {std::chrono::milliseconds(0), std::chrono::milliseconds::max()}) {
    const auto server = Server::start({.key = kKey, .silence = silence});
    ASSERT_FALSE(server);
    EXPECT_EQ(server.error().code, ErrorCode::kBadArgument);
    const auto client = Client::connect({.servers = {"h:1"}, .key = kKey, .silence = silence});
    ASSERT_FALSE(client);
    EXPECT_EQ(client.error().message, server.error().message);
  }
}

// A port of this machine on which no process listens, and which the system gives to no other
// process. A process that asks for this number may listen there.
class QuietPort {
 public:
  QuietPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in bound = {};
    bound.sin_family = AF_INET;
    bound.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const any = reinterpret_cast<sockaddr*>(&bound);
    socklen_t size = sizeof bound;
    EXPECT_EQ(::bind(socket_, any, size), 0);
    EXPECT_EQ(::getsockname(socket_, any, &size), 0);
    address = "127.0.0.1:" + std::to_string(ntohs(bound.sin_port));
  }
  QuietPort(const QuietPort&) = delete;
  QuietPort& operator=(const QuietPort&) = delete;
  ~QuietPort() { ::close(socket_); }

  std::string address = {};

 private:
  int socket_;
};

TEST(Connect, NamesTheServerThatDoesNotAnswer) {
  const QuietPort port;
  Job job(1);
  job.addresses.push_back(port.address);
  ClientOptions options = job.options(0);
  options.connect_timeout = std::chrono::seconds(3);  // also for the server that answers
  const auto client = Client::connect(options);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(client.error().host, job.addresses[1]);
  EXPECT_NE(client.error().message.find("parameter server 1 (" + job.addresses[1] + ")"),
            std::string::npos);
}

TEST(Connect, WaitsForAServerThatComesLate) {
  const QuietPort port;
  std::future<bool> joined = std::async(std::launch::async, [&] {
    return static_cast<bool>(
        Client::connect({.servers = {port.address}, .worker = 0, .key = kKey}));
  });
  const auto server = Server::start({.address = port.address, .key = kKey});
  ASSERT_TRUE(server) << server.error().to_string();
  EXPECT_TRUE(joined.get());
}

TEST(Connect, WithAnotherJobsKeyIsRejectedAtOnce) {
  const Job job(1);
  ClientOptions options = job.options(0);
  options.key = testing::kOtherKey;
  const auto client = Client::connect(options);
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().code, ErrorCode::kAuthentication) << client.error().to_string();
  EXPECT_EQ(job.servers[0].status().workers.size(), 0U);
}

TEST(Connect, AsAPresentWorkerReplacesIt) {
  const Job job(1);
  Client first = job.join(0);
  ASSERT_TRUE(first.declare({{"w", {1}, Values(1)}}, Sgd{}));
  Client second = job.join(0);
  ASSERT_TRUE(second.declare({{"w", {1}, Values(1)}}, Sgd{}));
  EXPECT_EQ(first.push({{"w", Values(1)}}).error().code, ErrorCode::kPeerLost);
  EXPECT_TRUE(second.push({{"w", Values(1)}}));
}

}  // namespace
}  // namespace muster::parameter_server
