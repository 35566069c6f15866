// The server against clients that are not ours: by the code that gRPC makes of the service's
// definition, which checks nothing before it sends. So what is refused here is refused by the
// server itself, and the chunks that are written by hand are what protobuf takes them for.
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <parameter_server.grpc.pb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <limits>
#include <new>

#include "parameter_server/certificates.h"
#include "parameter_server/rpc/messages.h"
#include "parameter_server/rpc/security.h"
#include "parameter_server/rpc/test_job.h"

namespace muster::parameter_server {
namespace {

using testing::Job;
using testing::kKey;
using testing::Values;

std::shared_ptr<grpc::Channel> channel_to(
    const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  return grpc::CreateCustomChannel(address, credentials,
                                   channel_arguments(std::chrono::seconds(10)));
}

// A worker that has joined a server whose model is w, of 2x2.
class Wire : public ::testing::Test {
 protected:
  explicit Wire(const ServerOptions& options = {}) : job_(1, options) {}

  void SetUp() override {
    ASSERT_TRUE(owner_.declare({{"w", {2, 2}, Values{1, 2, 3, 4}}}, Sgd{.learning_rate = 1}));
    lease_ = stub_->Join(&lease_context_);
    v1::JoinRequest hello;
    hello.set_worker(7);
    ASSERT_TRUE(lease_->Write(hello));
    ASSERT_TRUE(lease_->Read(&welcome_));
  }

  void TearDown() override { lease_context_.TryCancel(); }

  v1::PushHead head(const std::string& name = "w", std::uint64_t elements = 4) const {
    v1::PushHead head;
    head.set_session(welcome_.session());
    head.set_step(welcome_.clock());
    v1::NamedTensor* const tensor = head.add_tensors();
    tensor->set_name(name);
    tensor->set_elements(elements);
    return head;
  }

  grpc::Status push(const v1::PushHead& head, const Values& gradient) {
    grpc::ClientContext context;
    v1::PushResponse response;
    const auto stream = stub_->Push(&context, &response);
    v1::PushRequest request;
    *request.mutable_head() = head;
    stream->Write(request);
    if (!gradient.empty()) {
      request.set_data(gradient.data(), gradient.size() * sizeof(float));
      stream->Write(request);
    }
    stream->WritesDone();
    return stream->Finish();
  }

  Values pull() {
    v1::PullRequest request;
    request.set_session(welcome_.session());
    request.set_step(welcome_.clock());
    v1::NamedTensor* const tensor = request.add_tensors();
    tensor->set_name("w");
    tensor->set_elements(4);
    grpc::ClientContext context;
    const auto stream = stub_->Pull(&context, request);
    std::string data;
    v1::PullResponse response;
    while (stream->Read(&response)) data += response.data();
    EXPECT_TRUE(stream->Finish().ok());
    Values values(data.size() / sizeof(float));
    std::memcpy(values.data(), data.data(), values.size() * sizeof(float));
    return values;
  }

  void expect_refused(const grpc::Status& status, grpc::StatusCode code, const char* sentence) {
    EXPECT_EQ(status.error_code(), code);
    EXPECT_NE(status.error_message().find(sentence), std::string::npos) << status.error_message();
    EXPECT_EQ(pull(), (Values{1, 2, 3, 4}));
    EXPECT_EQ(job_.servers[0].status().refused, 1U);
    EXPECT_EQ(job_.servers[0].status().pushes, 0U);
  }

  Job job_;
  Client owner_ = job_.join(0);
  std::unique_ptr<v1::ParameterServer::Stub> stub_ =
      v1::ParameterServer::NewStub(channel_to(job_.addresses[0], *worker_credentials(kKey)));
  grpc::ClientContext lease_context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::JoinRequest, v1::JoinResponse>> lease_;
  v1::JoinResponse welcome_;
};

TEST_F(Wire, IsOrdinaryProtobuf) {
  EXPECT_TRUE(push(head(), {1, 1, 1, 1}).ok());
  v1::StatusResponse status;
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->Status(&context, {}, &status).ok());
  EXPECT_EQ(status.pushes(), 1U);
  EXPECT_EQ(status.workers_size(), 2);
  welcome_.set_clock(welcome_.clock() + 1);
  EXPECT_EQ(pull(), (Values{0, 1, 2, 3}));
}

TEST_F(Wire, AGradientWithANanIsRefusedWhole) {
  expect_refused(push(head(), {1, 1, 1, std::numeric_limits<float>::quiet_NaN()}),
                 grpc::StatusCode::INVALID_ARGUMENT,
                 "the gradient of worker 7 has a NaN as element 3 of 'w'");
}

TEST_F(Wire, APushForAnUnknownParameterIsRefused) {
  expect_refused(push(head("v"), {1, 1, 1, 1}), grpc::StatusCode::INVALID_ARGUMENT,
                 "no parameter 'v' was declared");
}

TEST_F(Wire, APushOfTheWrongSizeIsRefused) {
  expect_refused(push(head("w", 3), {1, 1, 1}), grpc::StatusCode::INVALID_ARGUMENT,
                 "'w' has 4 elements (2x2), not 3");
}

TEST_F(Wire, APushThatIsCutOffIsRefused) {
  expect_refused(push(head(), {1, 1, 1}), grpc::StatusCode::INVALID_ARGUMENT,
                 "the values are incomplete");
}

TEST_F(Wire, APushOfMoreThanItSaysIsRefused) {
  expect_refused(push(head(), {1, 1, 1, 1, 1}), grpc::StatusCode::INVALID_ARGUMENT, "no chunk");
}

TEST_F(Wire, APushOfAnotherStepIsRefused) {
  v1::PushHead again = head();
  again.set_step(welcome_.clock() + 1);
  expect_refused(push(again, {1, 1, 1, 1}), grpc::StatusCode::FAILED_PRECONDITION,
                 "worker 7 speaks of step 1, and is in step 0");
}

TEST_F(Wire, APushOfASessionThatIsNoneIsRefused) {
  v1::PushHead strange = head();
  strange.set_session(welcome_.session() + 1);
  expect_refused(push(strange, {1, 1, 1, 1}), grpc::StatusCode::ABORTED, "session has ended");
}

// Its workers take every step together.
class WireInStep : public Wire {
 protected:
  WireInStep() : Wire({.staleness = 0}) {}
};

TEST_F(WireInStep, ASecondPushBesideTheFirstIsRefused) {
  ASSERT_TRUE(push(head(), {1, 1, 1, 1}).ok());
  welcome_.set_clock(welcome_.clock() + 1);
  grpc::ClientContext context;
  v1::PushResponse response;
  const auto first = stub_->Push(&context, &response);
  v1::PushRequest request;
  *request.mutable_head() = head();
  ASSERT_TRUE(first->Write(request));
  testing::until_it_waits(job_.servers[0], 7);

  const grpc::Status second = push(head(), {1, 1, 1, 1});

  EXPECT_EQ(second.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(second.error_message().find("worker 7 brings values in another call already"), 0U);
  ASSERT_TRUE(owner_.push({{"w", Values(4, 1)}}));
  const Values gradient(4, 1);
  request.set_data(gradient.data(), gradient.size() * sizeof(float));
  first->Write(request);
  first->WritesDone();
  EXPECT_TRUE(first->Finish().ok());
  EXPECT_EQ(job_.servers[0].status().pushes, 3U);
}

TEST_F(Wire, ARefusalIsReadHoweverLongTheNameIsThatItSpeaksOf) {
  expect_refused(push(head(std::string(100'000, 'v')), {}), grpc::StatusCode::INVALID_ARGUMENT,
                 "no parameter 'vvvv");
}

TEST_F(Wire, WhoDeclaresLateIsAnsweredWithoutItsValues) {
  v1::DeclareRequest request;
  v1::Declaration& declaration = *request.mutable_declaration();
  declaration.set_session(welcome_.session());
  v1::Tensor* const tensor = declaration.add_tensors();
  tensor->set_name("w");
  tensor->add_shape(2);
  tensor->add_shape(2);
  declaration.mutable_sgd()->set_learning_rate(1);
  declaration.set_servers(1);
  grpc::ClientContext context;
  v1::DeclareResponse response;
  const auto stream = stub_->Declare(&context, &response);
  stream->Write(request);
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(response.values_of(), 0U);
}

TEST_F(Wire, ANumberThatIsNoWorkersIsRefused) {
  grpc::ClientContext context;
  const auto stream = stub_->Join(&context);
  v1::JoinRequest hello;
  hello.set_worker(std::numeric_limits<std::uint32_t>::max());
  stream->Write(hello);
  EXPECT_EQ(stream->Finish().error_message().find("4294967295 is no worker's number"), 0U);
}

TEST(Answers, SayWhereThereIsNoMemory) {
  const grpc::Status status = with_memory([]() -> grpc::Status { throw std::bad_alloc(); });
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(from_grpc(status, {.server = 1, .address = "h:1"}).code,
            collective::ErrorCode::kSystem);
}

// Whether the server answers who comes with these credentials.
bool answers(const Job& job, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  const auto stub = v1::ParameterServer::NewStub(channel_to(job.addresses[0], credentials));
  grpc::ClientContext context;
  v1::StatusResponse response;
  return stub->Status(&context, {}, &response).ok();
}

TEST(Strangers, GetNoAnswer) {
  const Job job(1);
  const auto certificates = certificates_from(kKey, End::kServer);
  const auto other = certificates_from(testing::kOtherKey, End::kWorker);
  ASSERT_TRUE(certificates);
  ASSERT_TRUE(other);
  EXPECT_TRUE(answers(job, *worker_credentials(kKey)));
  // Plain text.
  EXPECT_FALSE(answers(job, grpc::InsecureChannelCredentials()));
  // Trusts the server, and shows nothing; or what another job made; or a server's certificate.
  EXPECT_FALSE(answers(job, grpc::SslCredentials({.pem_root_certs = certificates->authority,
                                                  .pem_private_key = "",
                                                  .pem_cert_chain = ""})));
  EXPECT_FALSE(answers(job, grpc::SslCredentials({.pem_root_certs = certificates->authority,
                                                  .pem_private_key = other->private_key,
                                                  .pem_cert_chain = other->certificate})));
  EXPECT_FALSE(answers(job, grpc::SslCredentials({.pem_root_certs = certificates->authority,
                                                  .pem_private_key = certificates->private_key,
                                                  .pem_cert_chain = certificates->certificate})));
}

TEST(Strangers, WhoSayNothingAreNotWaitedFor) {
  const Job job(1, {.silence = std::chrono::milliseconds(100)});
  const std::string& address = job.addresses[0];
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int stranger = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::connect(stranger, reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);

  // Until the server hangs up.
  std::array<char, 256> bytes = {};
  while (::read(stranger, bytes.data(), bytes.size()) > 0) {
  }

  ::close(stranger);
  EXPECT_TRUE(answers(job, *worker_credentials(kKey)));
}

}  // namespace
}  // namespace muster::parameter_server
