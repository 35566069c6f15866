// The hub with real sockets: which callers it accepts, which it rejects, and how an accepted
// connection behaves.

#include "engine/node/connection.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/test_loop.h"

namespace muster::engine::node {
namespace {

const GangId kGang{.job_id = "job-1", .attempt = 2};

rsh::Key key_of(uint8_t byte) {
  rsh::Key key{};
  key.fill(byte);
  return key;
}

class NodeHubTest : public ::testing::Test {
 protected:
  NodeHubTest() {
    ::signal(SIGPIPE, SIG_IGN);
    auto hub = NodeHub::open(loop_.loop(), {.bind = "127.0.0.1",
                                            .key_of =
                                                [](const GangId& gang) {
                                                  return gang == kGang ? std::optional(key_of(1))
                                                                       : std::nullopt;
                                                },
                                            .on_connection =
                                                [this](std::shared_ptr<NodeConnection> line) {
                                                  line_ = std::move(line);
                                                  loop_.look();
                                                }});
    EXPECT_TRUE(hub);
    hub_ = *std::move(hub);
  }

  base::UniqueFd connect() const {
    base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(hub_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    return socket;
  }

  /// The node's end, which sends its Hello as soon as the handshake is done.
  std::shared_ptr<NodeSocket> call(const rsh::Key& key, const GangId& gang = kGang) {
    auto socket = std::make_shared<NodeSocket>(loop_.loop(), connect(), rsh::End::kNear, key);
    auto* const near_end = socket.get();
    socket->begin({.on_established =
                       [near_end] {
                         near_end->send(NodeNews(
                             Hello{.facts = {.node = "n1"}, .address = {}, .version = {}}));
                       },
                   .on_message =
                       [this](const NodeMessage& message) {
                         news_.push_back(message);
                         loop_.look();
                       },
                   .on_end =
                       [this](const std::string& why) {
                         ended_ = why;
                         loop_.look();
                       },
                   .on_drain = nullptr},
                  encode(Caller{gang}));
    return socket;
  }

  /// The bytes that a plain socket has received when the hub closes it.
  bool is_hung_up_on(const std::string& sent) {
    const base::UniqueFd socket = connect();
    EXPECT_EQ(::send(socket.get(), sent.data(), sent.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(sent.size()));
    bool over = false;
    const auto readable = loop_.loop().when_readable(socket.get(), [&] {
      char bytes[4096];
      const ssize_t count = ::recv(socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      over = over || count == 0 || (count < 0 && errno != EAGAIN);
      loop_.look();
    });
    return loop_.run_until([&] { return over; });
  }

  base::TestLoop loop_;
  std::unique_ptr<NodeHub> hub_;
  std::shared_ptr<NodeConnection> line_;
  std::vector<NodeMessage> news_;
  std::optional<std::string> ended_;
};

TEST_F(NodeHubTest, ACallerWithTheKeyIsAccepted) {
  const auto node = call(key_of(1));
  ASSERT_TRUE(loop_.run_until([&] { return line_ != nullptr; }));
  EXPECT_EQ(line_->gang(), kGang);
  EXPECT_EQ(line_->hello().facts.node, "n1");

  std::vector<NodeMessage> received;
  line_->listen({.on_message =
                     [&](const NodeMessage& message) {
                       received.push_back(message);
                       loop_.look();
                     },
                 .on_end = [](const std::string&) {}});
  node->send(NodeNews(SignalledNews{15}));
  line_->send(NodeOrder(Farewell{3}));
  ASSERT_TRUE(loop_.run_until([&] { return !received.empty() && !news_.empty(); }));

  EXPECT_EQ(std::get<SignalledNews>(std::get<NodeNews>(received.front())).signal, 15);
  EXPECT_EQ(std::get<Farewell>(std::get<NodeOrder>(news_.front())).code, 3);
}

TEST_F(NodeHubTest, MessagesBeforeTheHandlersAreKept) {
  const auto node = call(key_of(1));
  ASSERT_TRUE(loop_.run_until([&] { return line_ != nullptr; }));
  for (int i = 0; i < 1000; ++i) node->send(NodeNews(SignalledNews{i}));

  std::vector<int> received;
  line_->listen({.on_message =
                     [&](const NodeMessage& message) {
                       received.push_back(
                           std::get<SignalledNews>(std::get<NodeNews>(message)).signal);
                       loop_.look();
                     },
                 .on_end = [](const std::string&) {}});

  ASSERT_TRUE(loop_.run_until([&] { return received.size() == 1000; }));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(received[static_cast<size_t>(i)], i);
}

TEST_F(NodeHubTest, AnotherKeyOrGangIsRejected) {
  const auto stranger = call(key_of(2));
  ASSERT_TRUE(loop_.run_until([&] { return ended_.has_value(); }));
  ended_.reset();
  const auto unknown = call(key_of(1), {.job_id = "job-2", .attempt = 1});
  ASSERT_TRUE(loop_.run_until([&] { return ended_.has_value(); }));

  EXPECT_EQ(line_, nullptr);
}

TEST_F(NodeHubTest, AMalformedCallIsClosed) {
  EXPECT_TRUE(is_hung_up_on("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(is_hung_up_on(std::string(kLongestCaller, 'x')));
  EXPECT_TRUE(is_hung_up_on(encode(Caller{kGang}) + std::string(16 << 10, 'x')));
  EXPECT_EQ(line_, nullptr);
}

TEST_F(NodeHubTest, SilentCallersAreDisconnectedForNewCallers) {
  std::vector<base::UniqueFd> silent;
  for (int i = 0; i < 600; ++i) silent.push_back(connect());

  const auto node = call(key_of(1));

  EXPECT_TRUE(loop_.run_until([&] { return line_ != nullptr; }));
}

TEST_F(NodeHubTest, APausedConnectionLosesNothingAndReportsItsDrain) {
  const auto node = call(key_of(1));
  ASSERT_TRUE(loop_.run_until([&] { return line_ != nullptr; }));
  bool drained = false;
  line_->listen({.on_message = [](const NodeMessage&) {},
                 .on_end = [](const std::string&) {},
                 .on_drain =
                     [&] {
                       drained = true;
                       loop_.look();
                     }});
  node->pause(true);
  size_t sent = 0;
  while (line_->waiting() <= NodeConnection::kHigh) {
    line_->send(StreamBytes{std::string(64 << 10, static_cast<char>('a' + sent % 26))});
    ++sent;
  }
  EXPECT_TRUE(news_.empty());

  node->pause(false);

  ASSERT_TRUE(loop_.run_until([&] { return drained && news_.size() == sent; }));
  for (size_t i = 0; i < sent; ++i) {
    EXPECT_EQ(std::get<StreamBytes>(news_[i]).bytes.front(), static_cast<char>('a' + i % 26));
  }
}

TEST_F(NodeHubTest, AnEndIsReportedOnce) {
  auto node = call(key_of(1));
  ASSERT_TRUE(loop_.run_until([&] { return line_ != nullptr; }));
  int ends = 0;
  line_->listen({.on_message = [](const NodeMessage&) {},
                 .on_end =
                     [&](const std::string&) {
                       ++ends;
                       loop_.look();
                     }});
  node->hang_up();
  EXPECT_TRUE(loop_.run_until([&] { return ends == 1; }));
  line_.reset();
  EXPECT_EQ(ends, 1);
}

TEST_F(NodeHubTest, APortInUseIsAConflict) {
  const auto second = NodeHub::open(loop_.loop(), {.bind = "127.0.0.1", .port = hub_->port()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, base::ErrorCode::kConflict);
  EXPECT_FALSE(NodeHub::open(loop_.loop(), {.bind = "everywhere"}));
}

// --- over a stream that is not a socket

/// One of two streams in memory, each of which passes on what the other one writes.
class PairedStream : public PeerStream {
 public:
  struct End {
    Handlers handlers;
    std::string received;
    bool is_closed = false;
    bool has_reported_end = false;
    bool paused = false;
    std::weak_ptr<End> other;
  };

  static std::pair<std::unique_ptr<PeerStream>, std::unique_ptr<PeerStream>> make(
      base::TestLoop& loop) {
    auto one = std::make_unique<PairedStream>(loop);
    auto two = std::make_unique<PairedStream>(loop);
    one->end_->other = two->end_;
    two->end_->other = one->end_;
    return {std::move(one), std::move(two)};
  }

  explicit PairedStream(base::TestLoop& loop) : loop_(loop) {}
  ~PairedStream() override {
    end_->handlers = {};
    if (const auto other = end_->other.lock()) {
      other->is_closed = true;
      pass_on(other);
    }
  }

  void listen(Handlers handlers) override {
    end_->handlers = std::move(handlers);
    pass_on(end_);
  }
  void write(std::string_view bytes) override {
    const auto other = end_->other.lock();
    if (!other) return;
    other->received += bytes;
    pass_on(other);
  }
  size_t waiting() const override { return 0; }
  void pause(bool paused) override {
    end_->paused = paused;
    pass_on(end_);
  }

 private:
  /// Pauses reading. Like a WebSocket, the stream may still deliver bytes that it read before.
  void pass_on(const std::shared_ptr<End>& to) {
    loop_.loop().post([to, &loop = loop_] {
      const auto handlers = to->handlers;
      if (handlers.on_bytes && !to->received.empty()) {
        handlers.on_bytes(std::exchange(to->received, ""));
      }
      const bool is_over = to->is_closed && to->received.empty() && !to->has_reported_end;
      if (is_over && handlers.on_end) {
        to->has_reported_end = true;
        handlers.on_end("closed the connection: connection refused");
      }
      loop.look();
    });
  }

  base::TestLoop& loop_;
  std::shared_ptr<End> end_ = std::make_shared<End>();
};

TEST(NodeSocketOverAnyStream, PassesMessagesInBothDirections) {
  base::TestLoop loop;
  auto streams = PairedStream::make(loop);
  std::vector<NodeMessage> at_node;
  std::vector<NodeMessage> at_server;
  const auto node = std::make_shared<NodeSocket>(loop.loop(), std::move(streams.first),
                                                 rsh::End::kNear, key_of(1));
  const auto server = std::make_shared<NodeSocket>(loop.loop(), std::move(streams.second),
                                                   rsh::End::kFar, key_of(1));
  server->begin({.on_message = [&](NodeMessage message) { at_server.push_back(message); }}, {});
  node->begin({.on_message = [&](NodeMessage message) { at_node.push_back(message); }}, {});
  ASSERT_TRUE(loop.run_until([&] { return node->is_established() && server->is_established(); }));

  node->send(NodeNews(AnsweredNews{}));
  server->send(NodeOrder(StopOrder{StopMode::kNow}));

  EXPECT_TRUE(loop.run_until([&] { return at_node.size() == 1 && at_server.size() == 1; }));
  EXPECT_EQ(node->own_address(), "");
}

TEST(NodeSocketOverAnyStream, ReportsTheEndAfterTheMessagesAlsoIfItWasPaused) {
  base::TestLoop loop;
  auto streams = PairedStream::make(loop);
  std::vector<NodeMessage> at_server;
  std::optional<std::string> why;
  auto node = std::make_shared<NodeSocket>(loop.loop(), std::move(streams.first), rsh::End::kNear,
                                           key_of(1));
  const auto server = std::make_shared<NodeSocket>(loop.loop(), std::move(streams.second),
                                                   rsh::End::kFar, key_of(1));
  server->begin({.on_message =
                     [&](NodeMessage message) {
                       at_server.push_back(message);
                       server->pause(true);
                       loop.look();
                     },
                 .on_end =
                     [&](const std::string& reason) {
                       why = reason;
                       loop.look();
                     }},
                {});
  node->begin({}, {});
  ASSERT_TRUE(loop.run_until([&] { return node->is_established() && server->is_established(); }));
  constexpr size_t kMessages = 3;
  for (size_t i = 0; i < kMessages; ++i) node->send(NodeNews(AnsweredNews{}));
  node.reset();  // hangs up

  for (size_t i = 1; i <= kMessages; ++i) {
    ASSERT_TRUE(loop.run_until([&] { return at_server.size() == i; }));
    EXPECT_FALSE(why);
    server->pause(false);
  }
  EXPECT_TRUE(loop.run_until([&] { return why.has_value(); }));
  EXPECT_EQ(*why, "closed the connection: connection refused");
}

}  // namespace
}  // namespace muster::engine::node
