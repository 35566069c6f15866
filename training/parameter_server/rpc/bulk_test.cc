// Bulk connections: a server with a worker of another origin, which checks nothing before it sends,
// and a worker that falls back to gRPC.
#include <fcntl.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <parameter_server.grpc.pb.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstring>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "parameter_server/rpc/bulk_client.h"
#include "parameter_server/rpc/bulk_messages.h"
#include "parameter_server/rpc/bulk_server.h"
#include "parameter_server/rpc/connection.h"
#include "parameter_server/rpc/security.h"
#include "parameter_server/rpc/test_job.h"

namespace muster::parameter_server {
namespace {

using testing::Job;
using testing::kKey;
using testing::Values;
using Floats = std::span<const float>;

constexpr std::chrono::milliseconds kLong = std::chrono::minutes(1);

// A worker that has joined by gRPC as worker 7 and holds its lease.
class JoinedWorker {
 public:
  explicit JoinedWorker(const std::string& address)
      : stub_(v1::ParameterServer::NewStub(grpc::CreateCustomChannel(
            address, *worker_credentials(kKey), channel_arguments(std::chrono::seconds(10))))),
        lease_(stub_->Join(&context_)),
        host_(split_address(address).host) {
    v1::JoinRequest hello;
    hello.set_worker(7);
    EXPECT_TRUE(lease_->Write(hello));
    EXPECT_TRUE(lease_->Read(&welcome_));
  }
  ~JoinedWorker() { leave(); }

  void leave() { context_.TryCancel(); }

  HostAndPort bulk() const {
    return {.host = host_, .port = static_cast<std::uint16_t>(welcome_.bulk_port())};
  }
  std::uint64_t session() const { return welcome_.session(); }

  template <typename Request>
  Request request(const std::string& name = "w", std::uint64_t elements = 4) const {
    Request request;
    request.set_session(welcome_.session());
    request.set_step(welcome_.clock());
    auto* const tensor = request.add_tensors();
    tensor->set_name(name);
    tensor->set_elements(elements);
    return request;
  }

 private:
  std::unique_ptr<v1::ParameterServer::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::JoinRequest, v1::JoinResponse>> lease_;
  v1::JoinResponse welcome_;
  std::string host_;
};

// A server whose model is a tensor w of 2x2, with values 1 to 4.
class Bulk : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(owner_.declare({{"w", {2, 2}, Values{1, 2, 3, 4}}}, Sgd{.learning_rate = 1}));
  }

  std::unique_ptr<BulkClient> connect() const {
    return BulkClient::connect(context_, worker_.bulk(), worker_.session(), kLong);
  }

  // A connection that has only proved that it has the job's key.
  std::unique_ptr<TlsStream> shake_hands() const {
    auto socket = connect_to(worker_.bulk(), kLong);
    EXPECT_TRUE(socket);
    auto stream = std::make_unique<TlsStream>(context_, *std::move(socket));
    EXPECT_TRUE(stream->shake_hands());
    return stream;
  }

  static bool is_ended_by_server(TlsStream& stream) {
    std::array<std::byte, 1> byte = {};
    return !stream.read(byte);
  }

  std::optional<v1::BulkAnswer> push(const v1::PushHead& head, const Values& gradient) const {
    const auto client = connect();
    const std::array<Floats, 1> pieces = {gradient};
    return client->push(head, pieces);
  }

  void expect_unchanged() {
    Values values(4);
    EXPECT_TRUE(owner_.pull({{"w", values}}));
    EXPECT_EQ(values, (Values{1, 2, 3, 4}));
    EXPECT_EQ(job_.servers[0].status().pushes, 0U);
  }

  void expect_refused(const std::optional<v1::BulkAnswer>& answer, const char* sentence) {
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->code(), static_cast<std::uint32_t>(grpc::StatusCode::INVALID_ARGUMENT));
    EXPECT_NE(answer->text().find(sentence), std::string::npos) << answer->text();
    expect_unchanged();
  }

  Job job_{1};
  Client owner_ = job_.join(0);
  JoinedWorker worker_{job_.addresses[0]};
  TlsContext context_ = *TlsContext::create(kKey, End::kWorker);
};

TEST_F(Bulk, PushesAndPulls) {
  const auto client = connect();
  ASSERT_TRUE(client);
  const Values gradient = {1, 1, 1, 1};
  const auto pushed =
      client->push(worker_.request<v1::PushHead>(), std::array<Floats, 1>{gradient});
  ASSERT_TRUE(pushed);
  EXPECT_EQ(pushed->code(), 0U) << pushed->text();
  auto request = worker_.request<v1::PullRequest>();
  request.set_step(request.step() + 1);
  Values values(4);
  const auto pulled = client->pull(request, std::array<std::span<float>, 1>{values});
  ASSERT_TRUE(pulled);
  EXPECT_EQ(pulled->pushes(), 1U);
  EXPECT_EQ(values, (Values{0, 1, 2, 3}));
  EXPECT_EQ(job_.servers[0].status().bytes_in, 16U);
}

TEST_F(Bulk, AGradientWithANanIsRejectedAsAWhole) {
  expect_refused(
      push(worker_.request<v1::PushHead>(), {1, 1, 1, std::numeric_limits<float>::quiet_NaN()}),
      "the gradient of worker 7 has a NaN as element 3 of 'w'");
  EXPECT_EQ(job_.servers[0].status().refused, 1U);
}

TEST_F(Bulk, APushForAnUnknownParameterIsRejected) {
  expect_refused(push(worker_.request<v1::PushHead>("v"), {1, 1, 1, 1}),
                 "parameter 'v' was not declared");
}

TEST_F(Bulk, APushWithTooFewValuesIsRejected) {
  expect_refused(push(worker_.request<v1::PushHead>(), {1, 1, 1}),
                 "12 bytes of values were sent, but 16 are expected");
}

TEST_F(Bulk, APushWithTooManyValuesIsRejected) {
  expect_refused(push(worker_.request<v1::PushHead>(), Values(1'000'000, 1)),
                 "4000000 bytes of values were sent, but 16 are expected");
}

TEST_F(Bulk, APushThatBreaksOffChangesNothing) {
  {
    const auto stream = shake_hands();
    v1::BulkHello hello;
    hello.set_session(worker_.session());
    ASSERT_TRUE(send_message(*stream, BulkKind::kHello, hello));
    const auto answer = read_head(*stream);
    ASSERT_TRUE(answer);
    ASSERT_TRUE(send_message(*stream, BulkKind::kPushRequest, worker_.request<v1::PushHead>(), 16));
    const Values begin = {1, 1, 1};
    ASSERT_TRUE(stream->write(std::as_bytes(std::span(begin))));
    ASSERT_TRUE(stream->flush());
  }
  while (job_.servers[0].status().refused == 0) std::this_thread::yield();
  expect_unchanged();
}

TEST_F(Bulk, AnInvalidMessageEndsTheConnection) {
  v1::BulkHello hello;
  hello.set_session(worker_.session());
  const std::array<std::byte, kBulkHeadBytes> no_head = {std::byte{9}};
  {
    const auto stream = shake_hands();
    ASSERT_TRUE(stream->write(no_head) && stream->flush());
    EXPECT_TRUE(is_ended_by_server(*stream));
  }
  {
    const auto stream = shake_hands();  // a push without a hello
    ASSERT_TRUE(send_message(*stream, BulkKind::kPushRequest, worker_.request<v1::PushHead>(), 16));
    ASSERT_TRUE(stream->flush());
    EXPECT_TRUE(is_ended_by_server(*stream));
  }
  {
    const auto stream = shake_hands();
    ASSERT_TRUE(send_message(*stream, BulkKind::kHello, hello));
    ASSERT_TRUE(read_head(*stream));
    ASSERT_TRUE(stream->write(no_head) && stream->flush());
    EXPECT_TRUE(is_ended_by_server(*stream));
  }
  {
    const auto stream = shake_hands();  // two hellos
    ASSERT_TRUE(send_message(*stream, BulkKind::kHello, hello));
    ASSERT_TRUE(read_head(*stream));
    ASSERT_TRUE(send_message(*stream, BulkKind::kHello, hello));
    const auto head = read_head(*stream);
    v1::BulkAnswer answer;
    ASSERT_TRUE(head && read_message(*stream, *head, answer));
    EXPECT_EQ(answer.text().find("invalid message on a bulk connection"), 0U) << answer.text();
  }
  expect_unchanged();
}

TEST_F(Bulk, AnUnknownSessionOrOneWithAConnectionIsRejected) {
  EXPECT_FALSE(BulkClient::connect(context_, worker_.bulk(), worker_.session() + 100, kLong));
  const auto first = connect();
  EXPECT_TRUE(first);
  EXPECT_FALSE(connect());
}

TEST_F(Bulk, AStrangerIsRejected) {
  const auto context = TlsContext::create(testing::kOtherKey, End::kWorker);
  ASSERT_TRUE(context);
  EXPECT_FALSE(BulkClient::connect(*context, worker_.bulk(), worker_.session(), kLong));
}

TEST_F(Bulk, AWorkerWaitsWhileStrangersOccupyAllUnprovedConnections) {
  std::vector<Socket> strangers;
  for (int i = 0; i < BulkServer::kMostUnproved; ++i) {
    auto socket = connect_to(worker_.bulk(), kLong);
    ASSERT_TRUE(socket);
    strangers.push_back(*std::move(socket));
  }
  auto connected = std::async(std::launch::async, [&] { return connect(); });
  strangers.clear();
  EXPECT_TRUE(connected.get());
}

// The process opens no further descriptor while this object lives.
class NoFreeDescriptor {
 public:
  NoFreeDescriptor() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    ::close(next);
    rlimit low = before_;
    low.rlim_cur = static_cast<rlim_t>(next);
    ::setrlimit(RLIMIT_NOFILE, &low);
  }
  ~NoFreeDescriptor() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoFreeDescriptor(const NoFreeDescriptor&) = delete;
  NoFreeDescriptor& operator=(const NoFreeDescriptor&) = delete;

 private:
  rlimit before_ = {};
};

TEST_F(Bulk, AWorkerWaitsWhileTheServerHasNoFreeDescriptor) {
  ASSERT_EQ(worker_.bulk().host, "127.0.0.1");
  sockaddr_in there = {};
  there.sin_family = AF_INET;
  there.sin_port = htons(worker_.bulk().port);
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* const address = reinterpret_cast<const sockaddr*>(&there);
  const Socket first(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Socket second(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  {
    const NoFreeDescriptor none;
    // accept() has set a descriptor aside for the first connection before it waited, usually. Once
    // the server has closed that connection, it has tried to accept another.
    ASSERT_EQ(::connect(first.descriptor(), address, sizeof there), 0);
    ASSERT_EQ(::send(first.descriptor(), "GET / HTTP", 10, MSG_NOSIGNAL), 10);
    pollfd closed = {first.descriptor(), POLLIN, 0};
    ::poll(&closed, 1, 1'000);
    ASSERT_EQ(::connect(second.descriptor(), address, sizeof there), 0);
  }
  TlsStream stream(context_, std::move(second));
  EXPECT_TRUE(stream.shake_hands());
}

TEST_F(Bulk, AServersCertificateIsNotAcceptedAsAWorkers) {
  auto own = certificates_from(kKey, End::kServer);
  ASSERT_TRUE(own);
  const auto context = TlsContext::create(*own, End::kWorker);
  ASSERT_TRUE(context);
  EXPECT_FALSE(BulkClient::connect(*context, worker_.bulk(), worker_.session(), kLong));
}

TEST_F(Bulk, AConnectionEndsWithItsSession) {
  const auto client = connect();
  ASSERT_TRUE(client);
  worker_.leave();
  testing::until_there_are(job_.servers[0], 1);
  // The server may still answer a call that it gets before it closes the connection, with an error.
  Values values(4);
  const auto answer =
      client->pull(worker_.request<v1::PullRequest>(), std::array<std::span<float>, 1>{values});
  EXPECT_TRUE(!answer || answer->code() != 0);
}

TEST(SilentStranger, IsDisconnected) {
  // The same limit applies to the handshake of the worker, which a busy machine slows down.
  const Job job(1, {.silence = std::chrono::seconds(3)});
  const JoinedWorker worker(job.addresses[0]);
  auto socket = connect_to(worker.bulk(), kLong);
  ASSERT_TRUE(socket);
  std::array<char, 1> byte = {};
  EXPECT_EQ(::recv(socket->descriptor(), byte.data(), byte.size(), 0), 0);
}

// A worker's connection to the server of a job, without a client.
class Fallback : public ::testing::Test {
 protected:
  std::unique_ptr<Connection> join(const Job& job, const std::string& address) const {
    ClientOptions options = job.options(0);
    auto connection =
        std::make_unique<Connection>(Whom{.server = 0, .address = address}, options,
                                     *worker_identity(kKey), [](const collective::Error&) {});
    EXPECT_TRUE(connection->join(std::chrono::system_clock::now() + kLong));
    return connection;
  }

  // Pushes and pulls more than gRPC carries in a message.
  static void expect_that_it_works(Client& client) {
    const std::size_t count = 3'000'000;
    Values values(count);
    ASSERT_TRUE(client.declare({{"w", {3'000'000}, values}}, Sgd{.learning_rate = 1}));
    ASSERT_TRUE(client.push({{"w", Values(count, -1)}}));
    const auto pulled = client.pull({{"w", values}});
    ASSERT_TRUE(pulled);
    EXPECT_EQ(pulled->pushes, 1U);
    EXPECT_EQ(values, Values(count, 1));
    EXPECT_TRUE(client.leave());
  }
};

TEST_F(Fallback, IsNotNeededIfTheServerHasABulkPort) {
  const Job job(1);
  EXPECT_TRUE(join(job, job.addresses[0])->has_bulk());
  Client client = job.join(1);
  expect_that_it_works(client);
}

// This library does not resolve addresses with a scheme of gRPC, which serve here as addresses that
// it cannot reach.
TEST_F(Fallback, ServesAWorkerThatCannotConnect) {
  Job job(1);
  job.addresses[0] = "ipv4:" + job.addresses[0];
  EXPECT_FALSE(join(job, job.addresses[0])->has_bulk());
  Client client = job.join(1);
  expect_that_it_works(client);
}

TEST_F(Fallback, ServesTheWorkersOfAServerWithoutABulkPort) {
  const Job job(1, {.address = "dns:127.0.0.1:0"});
  EXPECT_FALSE(join(job, job.addresses[0])->has_bulk());
  Client client = job.join(1);
  expect_that_it_works(client);
}

TEST(BulkCall, ThatWaitsTooLongEnds) {
  Job job(1, {.staleness = 0});
  ClientOptions options = job.options(0);
  options.timeout = std::chrono::seconds(3);  // also of the calls that do not wait
  auto client = Client::connect(options);
  ASSERT_TRUE(client);
  const Client slow = job.join(1);
  ASSERT_TRUE(client->declare({{"w", {1}, Values(1)}}, Sgd{}));
  collective::Status pushed;
  while (pushed) pushed = client->push({{"w", Values(1)}});
  EXPECT_EQ(pushed.error().code, collective::ErrorCode::kTimeout) << pushed.error().to_string();
  EXPECT_EQ(pushed.error().host, job.addresses[0]);
}

TEST(BulkCall, OfADestroyedClientEnds) {
  Job job(1, {.staleness = 0});
  std::optional<Client> client(job.join(0));
  const Client slow = job.join(1);
  ASSERT_TRUE(client->declare({{"w", {1}, Values(1)}}, Sgd{}));
  ASSERT_TRUE(client->push({{"w", Values(1)}}));
  const Values gradient(1);
  const Gradient gradients[] = {{"w", gradient}};
  std::future<collective::Status> waiting = client->push_async(gradients);
  testing::until_it_waits(job.servers[0], 0);
  client.reset();
  EXPECT_EQ(waiting.get().error().message, "the client was destroyed during the call");
}

}  // namespace
}  // namespace muster::parameter_server
