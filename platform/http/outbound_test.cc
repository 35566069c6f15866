#include "http/outbound.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <csignal>
#include <thread>

#include "base/test_port.h"
#include "http/test_tls.h"

namespace muster::http {
namespace {

using base::ErrorCode;
using base::Result;
using std::chrono::milliseconds;

const IpAddress kHere = *ip_address_of("127.0.0.1");

class OutboundPost : public testing::Test {
 protected:
  OutboundPost() { std::signal(SIGPIPE, SIG_IGN); }

  static TlsContext trusting(const TlsTestServer& server) {
    return *client_context(server.trusted("localhost"));
  }
  static Result<Response> post_to(const TlsTestServer& server, Outbound request,
                                  const TlsContext& tls) {
    request.port = server.port();
    return post({kHere}, request, tls, {}, -1);
  }
};

TEST_F(OutboundPost, BringsHeadersAndBodyToTheAddressUnderTheNameThatWasAskedFor) {
  Request seen;
  TlsTestServer server([&](Request request, Respond respond) {
    seen = std::move(request);
    respond({.status = 202, .body = "taken"});
  });

  const auto answer = post_to(server,
                              {.host = "localhost",
                               .target = "/hook/a%2Fb?x=1",
                               .headers = {{"x-one", "1"}},
                               .body = "hello"},
                              trusting(server));

  // Our own server refuses an encoded slash. The refusal shows that it was sent unchanged.
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(answer->status, 400);

  const auto other = post_to(
      server,
      {.host = "localhost", .target = "/hook?x=1", .headers = {{"x-one", "1"}}, .body = "hello"},
      trusting(server));
  ASSERT_TRUE(other) << other.error().what;
  EXPECT_EQ(other->status, 202);
  EXPECT_EQ(other->body, "taken");
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.path, "/hook");
  EXPECT_EQ(seen.query.at("x"), "1");
  EXPECT_EQ(seen.headers.at("x-one"), "1");
  EXPECT_EQ(seen.headers.at("host"), "localhost:" + std::to_string(server.port()));
  EXPECT_EQ(seen.body, "hello");
}

TEST_F(OutboundPost, TrustsNoCertificateOfAnotherName) {
  TlsTestServer server([](Request, Respond respond) { respond({}); }, {},
                       identity_of({"elsewhere"}));

  const auto answer = post_to(server, {.host = "localhost"}, trusting(server));

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kRefused);
  EXPECT_NE(answer.error().what.find("cannot verify the certificate"), std::string::npos);
}

TEST_F(OutboundPost, TrustsNoCertificateThatTheSystemDoesNotTrust) {
  TlsTestServer server([](Request, Respond respond) { respond({}); });

  const auto answer = post_to(server, {.host = "localhost"}, *client_context({}));

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kRefused);
}

TEST_F(OutboundPost, FollowsNoRedirect) {
  int requests = 0;
  TlsTestServer server([&](Request, Respond respond) {
    ++requests;
    respond({.status = 302, .headers = {{"location", "/elsewhere"}}});
  });

  const auto answer = post_to(server, {.host = "localhost"}, trusting(server));

  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 302);
  EXPECT_EQ(requests, 1);
}

/// Accepts one connection on the loopback address, reads the head of a request, and sends `packets`.
class Answering {
 public:
  explicit Answering(std::vector<std::string> packets)
      : fd_(*listen_on({.host = "127.0.0.1", .port = 0})),
        thread_([this, packets = std::move(packets)] {
          pollfd ready{.fd = fd_.get(), .events = POLLIN, .revents = 0};
          ::poll(&ready, 1, -1);
          RawClient peer(base::UniqueFd(::accept(fd_.get(), nullptr, nullptr)));
          peer.read_to("\r\n\r\n");
          for (const std::string& packet : packets) peer.send(packet);
          peer.read_to_the_end();
        }) {}
  int port() const { return parse_host_and_port(*listening_at(fd_.get()))->port; }

 private:
  base::UniqueFd fd_;
  std::jthread thread_;
};

TEST_F(OutboundPost, ReadsTheFinalAnswerAfterInterimAnswers) {
  const std::string interim =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n";
  const std::string final = "HTTP/1.1 202 Accepted\r\ncontent-length: 5\r\n\r\ntaken";
  for (const auto& packets :
       {std::vector<std::string>{interim + final}, std::vector<std::string>{interim, final}}) {
    const Answering server(packets);
    const Outbound request{.over_tls = false, .host = "localhost", .port = server.port()};

    const auto answer = post({kHere}, request, nullptr, {}, -1);

    ASSERT_TRUE(answer) << answer.error().what;
    EXPECT_EQ(answer->status, 202);
    EXPECT_EQ(answer->body, "taken");
  }
}

TEST_F(OutboundPost, EndlessInterimAnswersAreNoAnswer) {
  std::string interim;
  while (interim.size() <= OutboundLimits().answer_bytes) {
    interim += "HTTP/1.1 100 Continue\r\n\r\n";
  }
  const Answering server({interim});
  const Outbound request{.over_tls = false, .host = "localhost", .port = server.port()};

  const auto answer = post({kHere}, request, nullptr, {}, -1);

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
}

TEST_F(OutboundPost, LeavesTheRestOfALongAnswerUnread) {
  TlsTestServer server(
      [&](Request, Respond respond) { respond({.body = std::string(10 << 20, 'x')}); });

  const auto answer = post_to(server, {.host = "localhost"}, trusting(server));

  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body.size(), 64U << 10);
}

/// A listening socket without a server: the kernel accepts connections, and no answer follows.
class Silent {
 public:
  Silent() : fd_(*listen_on({.host = "127.0.0.1", .port = 0})) {}
  int port() const { return parse_host_and_port(*listening_at(fd_.get()))->port; }

 private:
  base::UniqueFd fd_;
};

TEST_F(OutboundPost, DoesNotWaitLongerThanItsLimits) {
  const Silent silent;
  const TlsContext tls = *client_context({});
  const Outbound plain{.over_tls = false, .host = "localhost", .port = silent.port()};
  const Outbound secured{.host = "localhost", .port = silent.port()};

  const auto unanswered = post({kHere}, plain, tls, {.whole = milliseconds(500)}, -1);
  const auto unshaken = post({kHere}, secured, tls, {.connect = milliseconds(500)}, -1);

  ASSERT_FALSE(unanswered);
  EXPECT_NE(unanswered.error().what.find("did not answer in time"), std::string::npos);
  ASSERT_FALSE(unshaken);
  EXPECT_NE(unshaken.error().what.find("did not finish the TLS handshake in time"),
            std::string::npos);
}

TEST_F(OutboundPost, EndsWhenItIsCancelled) {
  const Silent silent;
  const base::UniqueFd cancel(::eventfd(1, EFD_CLOEXEC));
  const Outbound request{.over_tls = false, .host = "localhost", .port = silent.port()};

  const auto answer =
      post({kHere}, request, nullptr, {.whole = std::chrono::hours(1)}, cancel.get());

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(addresses_of("name.invalid", std::chrono::hours(1), cancel.get()).error().code,
            ErrorCode::kTimeout);
}

TEST_F(OutboundPost, TriesTheNextAddressIfTheFirstHasNoListener) {
  TlsTestServer server([](Request, Respond respond) { respond({}); });
  const Outbound request{.host = "localhost", .port = server.port()};

  const auto answer = post({*ip_address_of("::1"), kHere}, request, trusting(server), {}, -1);

  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(answer->status, 200);
}

TEST_F(OutboundPost, ReportsThatNoServerListens) {
  const base::HeldPort port;
  const Outbound request{.over_tls = false, .host = "localhost", .port = port.number()};

  const auto answer = post({kHere}, request, nullptr, {}, -1);

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(answer.error().what.find("Connection refused"), std::string::npos);
}

TEST(AddressesOf, AreThoseOfTheNameOrTheAddressItself) {
  const auto itself = addresses_of("fe80::1", milliseconds(1), -1);
  ASSERT_TRUE(itself);
  EXPECT_EQ(to_string(itself->front()), "fe80::1");

  const auto here = addresses_of("localhost", std::chrono::seconds(30), -1);
  ASSERT_TRUE(here) << here.error().what;
  for (const IpAddress& address : *here) {
    EXPECT_TRUE(to_string(address) == "127.0.0.1" || to_string(address) == "::1");
  }
}

// The resolver accepts unusual spellings of an address, so they are checked as addresses.
TEST(AddressesOf, AreSeenThroughOddSpellings) {
  for (const char* spelling : {"2130706433", "0x7f.1", "127.1", "0177.0.0.1"}) {
    const auto found = addresses_of(spelling, std::chrono::seconds(30), -1);
    ASSERT_TRUE(found) << spelling;
    EXPECT_EQ(to_string(found->front()), "127.0.0.1") << spelling;
  }
}

TEST(IpAddress, IsReadInItsPlainSpellingAlone) {
  EXPECT_EQ(to_string(*ip_address_of("10.1.2.3")), "10.1.2.3");
  EXPECT_EQ(to_string(*ip_address_of("::ffff:10.1.2.3")), "::ffff:10.1.2.3");
  for (const char* text : {"", "127.1", "[::1]", "::1%lo", "10.1.2.3.4", "host"}) {
    EXPECT_EQ(ip_address_of(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace muster::http
