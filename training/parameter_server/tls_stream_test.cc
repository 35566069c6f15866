#include "parameter_server/tls_stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <future>
#include <optional>
#include <thread>

namespace muster::parameter_server {
namespace {

constexpr const char* kJobKey = "00112233445566778899aabbccddeeff";
constexpr const char* kStrangersKey = "ffeeddccbbaa99887766554433221100";

using Data = std::vector<std::byte>;

Data data_of(std::size_t count) {
  Data data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<std::byte>(i * 7 + (i >> 12));
  return data;
}

TlsContext context_of(End end, const char* key = kJobKey) {
  auto context = TlsContext::create(key, end);
  EXPECT_TRUE(context);
  return *std::move(context);
}

// Both ends of a connection over a socket of this machine.
class Ends {
 public:
  explicit Ends(TlsContext server_context = context_of(End::kServer),
                TlsContext worker_context = context_of(End::kWorker))
      : server_context_(std::move(server_context)), worker_context_(std::move(worker_context)) {
    const auto listener = listen_on("127.0.0.1");
    EXPECT_TRUE(listener);
    auto connected =
        connect_to({.host = "127.0.0.1", .port = port_of(*listener)}, std::chrono::seconds(60));
    EXPECT_TRUE(connected);
    server.emplace(server_context_,
                   Socket(::accept4(listener->descriptor(), nullptr, nullptr, SOCK_CLOEXEC)));
    worker.emplace(worker_context_, *std::move(connected));
  }

  // Whether both ends have accepted each other. A worker learns from its first read.
  bool shake_hands() {
    std::future<bool> answer = std::async(std::launch::async, [this] {
      const std::array<std::byte, 1> byte = {};
      const bool accepted = server->shake_hands() && server->write(byte) && server->flush();
      if (!accepted) server->shut_down();
      return accepted;
    });
    std::array<std::byte, 1> byte = {};
    const bool accepted = worker->shake_hands() && worker->read(byte);
    if (!accepted) worker->shut_down();
    return answer.get() && accepted;
  }

 private:
  TlsContext server_context_;
  TlsContext worker_context_;

 public:
  std::optional<TlsStream> server;
  std::optional<TlsStream> worker;
};

// Sends the data in pieces of a size and returns what arrives, in pieces of another size.
Data carry(TlsStream& from, TlsStream& to, const Data& data, std::size_t written,
           std::size_t read) {
  std::future<bool> sent = std::async(std::launch::async, [&] {
    for (std::size_t at = 0; at < data.size(); at += written) {
      if (!from.write(std::span(data).subspan(at, std::min(written, data.size() - at)))) {
        return false;
      }
    }
    return from.flush();
  });
  Data arrived(data.size());
  for (std::size_t at = 0; at < arrived.size(); at += read) {
    EXPECT_TRUE(to.read(std::span(arrived).subspan(at, std::min(read, arrived.size() - at))));
  }
  EXPECT_TRUE(sent.get());
  return arrived;
}

TEST(TlsStream, CarriesBytesInBothDirectionsInPiecesOfAnySize) {
  Ends ends;
  ASSERT_TRUE(ends.shake_hands());
  const Data data = data_of(300'001);
  for (const std::size_t piece : {std::size_t{7}, std::size_t{16'384}, std::size_t{100'000}}) {
    EXPECT_EQ(carry(*ends.worker, *ends.server, data, piece, 65'536), data);
    EXPECT_EQ(carry(*ends.server, *ends.worker, data, data.size(), piece), data);
  }
}

TEST(TlsStream, ChangesItsKeysWhileItCarriesBytes) {
  Ends ends;
  ASSERT_TRUE(ends.shake_hands());
  ends.worker->rekey_after(50'000);
  ends.server->rekey_after(1);
  const Data data = data_of(400'000);
  EXPECT_EQ(carry(*ends.worker, *ends.server, data, 20'000, 1'000), data);
  EXPECT_EQ(carry(*ends.server, *ends.worker, data, 20'000, 100'000), data);
}

TEST(TlsStream, RejectsAnotherJobsKey) {
  EXPECT_TRUE(Ends().shake_hands());
  EXPECT_FALSE(
      Ends(context_of(End::kServer), context_of(End::kWorker, kStrangersKey)).shake_hands());
  EXPECT_FALSE(
      Ends(context_of(End::kServer, kStrangersKey), context_of(End::kWorker)).shake_hands());
}

TEST(TlsStream, RejectsAPeerThatDoesNotUseTls) {
  const auto listener = listen_on("127.0.0.1");
  ASSERT_TRUE(listener);
  auto connected =
      connect_to({.host = "127.0.0.1", .port = port_of(*listener)}, std::chrono::seconds(60));
  ASSERT_TRUE(connected);
  const TlsContext context = context_of(End::kServer);
  TlsStream server(context,
                   Socket(::accept4(listener->descriptor(), nullptr, nullptr, SOCK_CLOEXEC)));
  const std::string request = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_EQ(::send(connected->descriptor(), request.data(), request.size(), 0),
            static_cast<ssize_t>(request.size()));
  EXPECT_FALSE(server.shake_hands());
}

TEST(TlsStream, FailsIfTheOtherEndEndsBeforeAllBytesHaveArrived) {
  Ends ends;
  ASSERT_TRUE(ends.shake_hands());
  ASSERT_TRUE(ends.worker->write(data_of(20'000)));
  ASSERT_TRUE(ends.worker->flush());
  ends.worker.reset();
  Data arrived(20'001);
  EXPECT_FALSE(ends.server->read(arrived));
}

TEST(TlsStream, FailsToWriteToAnEndThatIsGone) {
  Ends ends;
  ASSERT_TRUE(ends.shake_hands());
  ends.server.reset();
  const Data data = data_of(1'000'000);
  bool succeeded = true;
  while (succeeded) succeeded = ends.worker->write(data);
}

TEST(TlsStream, EndsAReadAndAWriteWithoutPatience) {
  Ends ends;
  ASSERT_TRUE(ends.shake_hands());
  int asked = 0;
  ends.worker->wait_with([&] { return ++asked < 3; }, std::chrono::milliseconds(1));
  Data byte(1);
  EXPECT_FALSE(ends.worker->read(byte));
  EXPECT_EQ(asked, 3);
  // The server does not read: the write waits as soon as the system's buffers are full.
  ends.worker->wait_with([&] { return ++asked < 200; }, std::chrono::milliseconds(1));
  const Data data = data_of(1'000'000);
  bool succeeded = true;
  while (succeeded) succeeded = ends.worker->write(data);
  EXPECT_EQ(asked, 200);
}

TEST(TlsStream, ThatIsShutDownEndsAPendingRead) {
  Ends ends;
  ASSERT_TRUE(ends.shake_hands());
  std::future<bool> pending = std::async(std::launch::async, [&] {
    Data byte(1);
    return ends.server->read(byte);
  });
  ends.server->shut_down();
  EXPECT_FALSE(pending.get());
}

TEST(Address, IsSplitIntoHostAndPort) {
  EXPECT_EQ(split_address("h:1").host, "h");
  EXPECT_EQ(split_address("h:1").port, 1);
  EXPECT_EQ(split_address("[::1]:65535").host, "::1");
  EXPECT_EQ(split_address("[::1]:65535").port, 65'535);
  EXPECT_EQ(split_address("h").host, "h");
  EXPECT_EQ(split_address("h:65536").port, 0);
}

TEST(ConnectTo, FailsWhereNoProcessListens) {
  std::uint16_t port = 0;
  {
    const auto listener = listen_on("127.0.0.1");
    ASSERT_TRUE(listener);
    port = port_of(*listener);
  }
  const auto socket = connect_to({.host = "127.0.0.1", .port = port}, std::chrono::seconds(60));
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().message, "cannot connect to 127.0.0.1: Connection refused");
  EXPECT_FALSE(connect_to({.host = "ipv4:127.0.0.1", .port = port}, std::chrono::seconds(60)));
}

}  // namespace
}  // namespace muster::parameter_server
