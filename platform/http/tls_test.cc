// The server and the client over TLS: trusted peers, untrusted peers, and hostile clients.

#include "http/tls.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "http/client.h"
#include "http/test_tls.h"

namespace muster::http {

using base::ErrorCode;

namespace {

/// Identifies the callers of all paths but /public.
void echo_with_peer(const Request& request, const Respond& respond) {
  if (request.path != "/public") *request.identified = true;
  respond({.content_type = "text/plain",
           .body = request.method + " " + request.path + " from " + request.peer.address +
                   (request.peer.user ? " local " : " ") + request.headers.at("host") + "\n" +
                   request.body});
}

TEST(Tls, CarriesRequestsForAClientThatHasPinnedTheCertificate) {
  TlsTestServer server(echo_with_peer);
  BlockingClient client(server.pinned());

  for (int i = 0; i < 10; ++i) {
    const auto response = client.send({.method = "POST", .path = "/a b", .body = "hello"});
    ASSERT_TRUE(response) << response.error().to_string();
    EXPECT_EQ(response->body,
              "POST /a b from 127.0.0.1 127.0.0.1:" + std::to_string(server.port()) + "\nhello");
  }
  EXPECT_EQ(server.connections(), 1U);
}

TEST(Tls, TakesAFingerprintAsPeopleWriteIt) {
  TlsTestServer server(echo_with_peer);
  TlsEndpoint endpoint = server.pinned();
  endpoint.fingerprint = "SHA256:" + readable_fingerprint(endpoint.fingerprint);

  EXPECT_TRUE(BlockingClient(endpoint).send({}));
}

TEST(Tls, CarriesRequestsForAClientThatTrustsTheAuthority) {
  TlsTestServer server(echo_with_peer);

  for (const char* host : {"localhost", "127.0.0.1"}) {
    const auto response = BlockingClient(server.trusted(host)).send({});
    EXPECT_TRUE(response) << response.error().to_string();
  }
}

TEST(Tls, AWakeEndsTheWaitForAServerThatDoesNotAnswer) {
  const auto listener = listen_on({.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(listener) << listener.error().to_string();
  const auto address = parse_host_and_port(*listening_at(listener->get()));
  ASSERT_TRUE(address);
  BlockingClient client(TlsEndpoint{.host = "127.0.0.1", .port = address->port});
  const base::UniqueFd event(::eventfd(1, EFD_CLOEXEC));
  int wakes = 0;
  const Wake wake{.fd = event.get(), .on_wake = [&] { return ++wakes < 2; }};

  const auto response = client.stream({}, [](std::string_view) { return true; }, wake);

  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().what, "interrupted while connecting to the server");
  EXPECT_EQ(wakes, 2);
}

TEST(Tls, RefusesACertificateThatIsNotThePinnedOne) {
  TlsTestServer server(echo_with_peer);
  TlsEndpoint endpoint = server.pinned();
  endpoint.fingerprint = std::string(64, '0');

  const auto response = BlockingClient(endpoint).send({});

  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kRefused);
  EXPECT_EQ(response.error().what,
            "the certificate of the server at 127.0.0.1:" + std::to_string(server.port()) +
                " is not the pinned one: its fingerprint is " +
                readable_fingerprint(server.fingerprint()) + ", expected " +
                readable_fingerprint(endpoint.fingerprint));
}

TEST(Tls, RefusesACertificateThatIsNotTheHosts) {
  TlsTestServer server(echo_with_peer, {}, identity_of({"muster.example.com", "10.1.2.3"}));
  const std::string where = "cannot verify the certificate of the server at ";
  const std::string port = ":" + std::to_string(server.port());

  const auto by_name = BlockingClient(server.trusted("localhost")).send({});
  const auto by_address = BlockingClient(server.trusted("127.0.0.1")).send({});

  ASSERT_FALSE(by_name);
  ASSERT_FALSE(by_address);
  EXPECT_EQ(by_name.error().code, ErrorCode::kRefused);
  EXPECT_EQ(by_name.error().what, where + "localhost" + port + ": hostname mismatch");
  EXPECT_EQ(by_address.error().what, where + "127.0.0.1" + port + ": IP address mismatch");
}

TEST(Tls, RefusesACertificateOfAnotherTimeUnlessItIsPinned) {
  const auto long_ago = base::SystemClock().now() - std::chrono::hours(24 * 100);
  TlsTestServer server(echo_with_peer, {}, identity_of({"localhost"}, long_ago));

  const auto response = BlockingClient(server.trusted("localhost")).send({});

  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kRefused);
  EXPECT_TRUE(response.error().what.ends_with("certificate has expired")) << response.error().what;
  EXPECT_TRUE(BlockingClient(server.pinned()).send({}));
}

TEST(Tls, RefusesACertificateThatNoAuthorityHasSigned) {
  TlsTestServer server(echo_with_peer);
  TlsEndpoint other = server.trusted("localhost");
  other.authorities = identity_of({"localhost"}).certificate;
  TlsEndpoint system = server.trusted("localhost");
  system.authorities.clear();

  for (const TlsEndpoint& endpoint : {other, system}) {
    const auto response = BlockingClient(endpoint).send({});
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().code, ErrorCode::kRefused);
    EXPECT_NE(response.error().what.find("cannot verify the certificate"), std::string::npos);
  }
}

TEST(Tls, ReportsInvalidAuthorities) {
  const auto response =
      BlockingClient(TlsEndpoint{.host = "localhost", .authorities = "x"}).send({});

  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::kInvalid);
}

TEST(Tls, ShowsItsFingerprintToEveryClient) {
  TlsTestServer server(echo_with_peer);

  const auto fingerprint = fingerprint_at("127.0.0.1", server.port());

  ASSERT_TRUE(fingerprint) << fingerprint.error().to_string();
  EXPECT_EQ(*fingerprint, server.fingerprint());
}

TEST(Tls, HasAnotherCertificateForConnectionsFromNowOn) {
  TlsTestServer server(echo_with_peer);
  BlockingClient before(server.pinned());
  ASSERT_TRUE(before.send({}));
  const TlsIdentity next = identity_of({"localhost"});

  server.on_loop([&] {
    EXPECT_FALSE(server.server().set_identity({.certificate = next.certificate, .key = "x"}));
    EXPECT_TRUE(server.server().set_identity(next));
  });

  EXPECT_EQ(*fingerprint_at("127.0.0.1", server.port()), *fingerprint_of(next.certificate));
  EXPECT_TRUE(before.send({}));
}

TEST(Tls, CarriesLargeBodiesBothWays) {
  TlsTestServer server(
      [](const Request& request, const Respond& respond) { respond({.body = request.body}); },
      {.body_bytes = 16 << 20});
  std::string body(16 << 20, 'x');
  body.back() = 'y';

  const auto response = BlockingClient(server.pinned()).send({.method = "POST", .body = body});

  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(response->body, body);
}

TEST(Tls, RefusesABodyOfAGibibyteWithoutReadingIt) {
  TlsTestServer server(echo_with_peer);
  RawTlsClient client(server);

  client.send("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 1073741824\r\n\r\n");

  EXPECT_EQ(first_line(client.read_to_the_end()), "HTTP/1.1 413 Content Too Large");
}

TEST(Tls, RefusesABodyThatIsTooLargeWhileTheClientIsStillSending) {
  TlsTestServer server(echo_with_peer, {.body_bytes = 1000});

  const auto response =
      BlockingClient(server.pinned()).send({.method = "POST", .body = std::string(32 << 20, 'x')});

  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(response->status, 413);
}

TEST(Tls, ClosesTheConnectionOfAClientWithoutTls) {
  TlsTestServer server(echo_with_peer);
  RawClient client(server.tcp());

  client.send("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");

  EXPECT_EQ(client.read_to_the_end().find("HTTP/1.1"), std::string::npos);
  EXPECT_TRUE(BlockingClient(server.pinned()).send({}));
}

TEST(Tls, SurvivesClientsThatDisconnectDuringTheHandshake) {
  TlsTestServer server(echo_with_peer);
  for (const std::string_view beginning :
       {std::string_view(), std::string_view("\x16\x03\x01", 3)}) {
    RawClient client(server.tcp());
    client.send(beginning);
    client.leave();
  }

  EXPECT_TRUE(BlockingClient(server.pinned()).send({}));
  while (server.connections() > 0) std::this_thread::yield();
}

TEST(Tls, HangsUpOnAClientThatDoesNotFinishTheHandshake) {
  TlsTestServer server(echo_with_peer, {.request_timeout = std::chrono::seconds(1)});
  RawClient silent(server.tcp());
  RawClient slow(server.tcp());

  slow.send({"\x16\x03\x01\x02", 4});

  EXPECT_EQ(silent.read_to_the_end(), "");
  EXPECT_EQ(slow.read_to_the_end(), "");
  EXPECT_EQ(server.connections(), 0U);
}

TEST(Tls, HangsUpOnAClientThatSendsTooSlowly) {
  // The client's handshake has to end within this time.
  TlsTestServer server(echo_with_peer, {.request_timeout = std::chrono::seconds(3)});
  RawTlsClient client(server);

  client.send("GET / HTT");

  EXPECT_EQ(first_line(client.read_to_the_end()), "HTTP/1.1 408 Request Timeout");
}

/// A stream that never ends, and reports when it is dropped.
class Endless : public BodyStream {
 public:
  explicit Endless(std::promise<void>& dropped) : dropped_(dropped) {}
  ~Endless() override { dropped_.set_value(); }
  void pull(Deliver deliver) override { deliver(std::string(1 << 16, 'x')); }

 private:
  std::promise<void>& dropped_;
};

TEST(Tls, DropsAClientThatStopsReading) {
  std::promise<void> dropped;
  TlsTestServer server(
      [&](const Request&, const Respond& respond) {
        respond({.stream = std::make_shared<Endless>(dropped)});
      },
      {.write_timeout = std::chrono::seconds(1)});
  RawTlsClient client(server);

  client.send("GET / HTTP/1.1\r\nhost: h\r\n\r\n");

  EXPECT_EQ(dropped.get_future().wait_for(kPatience), std::future_status::ready);
}

TEST(Tls, StreamsUntilTheReceiverHasEnough) {
  std::promise<void> dropped;
  TlsTestServer server([&](const Request&, const Respond& respond) {
    respond({.stream = std::make_shared<Endless>(dropped)});
  });
  BlockingClient client(server.pinned());
  size_t received = 0;

  const auto response = client.stream({}, [&](std::string_view piece) {
    received += piece.size();
    return received < (8 << 20);
  });

  EXPECT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(dropped.get_future().wait_for(kPatience), std::future_status::ready);
}

/// Sends nothing until it is dropped.
class Silence : public BodyStream {
 public:
  void pull(Deliver deliver) override { open_ = std::move(deliver); }

 private:
  Deliver open_;
};

TEST(Tls, ServesWakesWhileTheStreamIsSilent) {
  const base::UniqueFd event(::eventfd(0, EFD_CLOEXEC));
  TlsTestServer server([&event](const Request&, const Respond& respond) {
    respond({.stream = std::make_shared<Silence>()});
    ::eventfd_write(event.get(), 1);
  });
  bool woken = false;

  const auto response =
      BlockingClient(server.pinned())
          .stream({}, [](auto) { return true; }, {.fd = event.get(), .on_wake = [&] {
                                                    woken = true;
                                                    return false;
                                                  }});

  EXPECT_TRUE(response) << response.error().to_string();
  EXPECT_TRUE(woken);
}

TEST(Tls, LimitsTheConnectionsOfOneAddress) {
  TlsTestServer server(echo_with_peer, {.connections_of_address = 2});
  auto first = std::make_unique<BlockingClient>(server.pinned());
  BlockingClient second(server.pinned());
  ASSERT_TRUE(first->send({}));
  ASSERT_TRUE(second.send({}));

  const auto third = BlockingClient(server.pinned()).send({});
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::kUnavailable);

  first.reset();
  while (server.connections() > 1) std::this_thread::yield();
  EXPECT_TRUE(BlockingClient(server.pinned()).send({}));
  EXPECT_TRUE(BlockingClient(server.socket()).send({}));
}

TEST(Tls, HangsUpOnMoreConnectionsThanTheLimit) {
  TlsTestServer server(echo_with_peer, {.connections = 1});
  BlockingClient first(server.pinned());
  ASSERT_TRUE(first.send({}));

  EXPECT_EQ(BlockingClient(server.pinned()).send({}).error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(first.send({}));
}

TEST(Tls, ANewConnectionTakesThePlaceOfTheOldestWithoutAnIdentifiedCaller) {
  for (const Limits& limits : {Limits{.connections = 3}, Limits{.connections_of_address = 3}}) {
    TlsTestServer server(echo_with_peer, limits);
    BlockingClient known(server.pinned());
    ASSERT_TRUE(known.send({}));
    RawClient silent(server.tcp());
    while (server.connections() < 2) std::this_thread::yield();
    RawTlsClient visitor(server);
    visitor.send("GET /public HTTP/1.1\r\nhost: h\r\n\r\n");
    visitor.read_to("from 127.0.0.1 h\n");

    BlockingClient second(server.pinned());
    EXPECT_TRUE(second.send({}));
    EXPECT_EQ(silent.read_to_the_end(), "");
    EXPECT_EQ(server.connections(), 3U);
    BlockingClient third(server.pinned());
    EXPECT_TRUE(third.send({}));
    EXPECT_EQ(visitor.read_to_the_end(), "");

    EXPECT_FALSE(BlockingClient(server.pinned()).send({})) << "all callers are identified";
    EXPECT_TRUE(known.send({}));
    EXPECT_TRUE(second.send({}));
  }
}

TEST(Tls, GivesANewcomerLessTimeThanALaterRequest) {
  TlsTestServer server(echo_with_peer, {.newcomer_timeout = std::chrono::seconds(3)});
  RawTlsClient known(server);
  known.send("GET / HTTP/1.1\r\nhost: h\r\n\r\n");
  known.read_to("from 127.0.0.1 h\n");
  RawTlsClient uploads(server);
  uploads.send("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\n");
  RawClient silent(server.tcp());
  RawTlsClient slow(server);
  slow.send("GET / HTT");

  EXPECT_EQ(silent.read_to_the_end(), "");
  EXPECT_EQ(first_line(slow.read_to_the_end()), "HTTP/1.1 408 Request Timeout");
  uploads.send("abc");
  EXPECT_EQ(first_line(uploads.read_to("abc")), "HTTP/1.1 200 OK");
  known.send("GET / HTTP/1.1\r\nhost: h\r\n\r\n");
  EXPECT_EQ(first_line(known.read_to("from 127.0.0.1 h\n")), "HTTP/1.1 200 OK");
}

TEST(Tls, ManyTlsClientsDoNotBlockTheUnixSocket) {
  TlsTestServer server(echo_with_peer, {.connections = 1});
  BlockingClient stranger(server.pinned());
  ASSERT_TRUE(stranger.send({}));

  BlockingClient owner(server.socket());
  const auto response = owner.send({});
  ASSERT_TRUE(response) << response.error().to_string();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(BlockingClient(server.socket()).send({})->status, 503) << "which has its own limit";
}

TEST(Tls, ReportsThatTheServerDoesNotUseTls) {
  const auto listener = listen_on(HostAndPort{.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(listener);
  const auto address = parse_host_and_port(*listening_at(listener->get()));
  std::thread other([fd = listener->get()] {
    pollfd waits{.fd = fd, .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&waits, 1, 20'000), 1);
    RawClient client(base::UniqueFd(::accept(fd, nullptr, nullptr)));
    client.send("SSH-2.0-OpenSSH\r\n");
    client.read_to_the_end();
  });

  const auto fingerprint = fingerprint_at(address->host, address->port);

  other.join();
  ASSERT_FALSE(fingerprint);
  EXPECT_EQ(fingerprint.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(fingerprint.error().what,
            "no TLS connection to the server at " + to_string(*address) + ": wrong version number");
}

TEST(Listen, RefusesAnInvalidAddress) {
  TestServer server(echo_with_peer);
  const TlsIdentity identity = identity_of({"localhost"});

  server.on_loop([&] {
    const auto nowhere = server.server().listen(std::string("nowhere"), identity);
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().code, ErrorCode::kInvalid);
    const auto without_identity = server.server().listen(std::string("127.0.0.1:0"), TlsIdentity{});
    ASSERT_FALSE(without_identity);
    EXPECT_EQ(without_identity.error().code, ErrorCode::kInvalid);
  });
}

TEST(Tls, LimitsWhatUnfinishedRequestsOfAllConnectionsHold) {
  TlsTestServer server(echo_with_peer, {.waiting_bytes = 20 << 10});
  // In one TLS record, so the server has all of the second request once it has answered the
  // first.
  const std::string get = "GET / HTTP/1.1\r\nhost: h\r\n";
  const std::string one_and_a_half = get + "\r\n" + get + "x: " + std::string(12 << 10, 'x');
  RawTlsClient first(server);
  RawTlsClient second(server);

  first.send(one_and_a_half);
  EXPECT_EQ(first_line(first.read_some()), "HTTP/1.1 200 OK");
  second.send(one_and_a_half);
  const std::string answers = second.read_to_the_end();
  first.send("\r\nconnection: close\r\n\r\n");

  EXPECT_NE(answers.find("HTTP/1.1 200 OK"), std::string::npos) << answers;
  EXPECT_NE(answers.find("HTTP/1.1 503 Service Unavailable"), std::string::npos) << answers;
  EXPECT_NE(first.read_to_the_end().find("HTTP/1.1 200 OK"), std::string::npos);
}

}  // namespace
namespace {

constexpr base::Time kNow{std::chrono::seconds{1'700'000'000}};
constexpr std::chrono::hours kYear{24 * 365};

TEST(SelfSigned, IsAnIdentityThatAServerCanHave) {
  const auto identity = make_self_signed({"muster.example.com", "10.0.0.1", "::1"}, kNow, kYear);

  ASSERT_TRUE(identity) << identity.error().to_string();
  EXPECT_TRUE(identity->certificate.starts_with("-----BEGIN CERTIFICATE-----\n"));
  EXPECT_TRUE(identity->key.starts_with("-----BEGIN PRIVATE KEY-----\n"));
  EXPECT_TRUE(check_identity(*identity));
}

TEST(SelfSigned, IsAnotherEachTime) {
  const auto one = make_self_signed({"a"}, kNow, kYear);
  const auto other = make_self_signed({"a"}, kNow, kYear);

  EXPECT_NE(one->key, other->key);
  EXPECT_NE(*fingerprint_of(one->certificate), *fingerprint_of(other->certificate));
}

TEST(SelfSigned, RefusesNamesThatNoHostHas) {
  for (const char* name : {"", "a,DNS:b", "a b", "a\n", "a=b", "\xC3\xA4"}) {
    const auto identity = make_self_signed({"good", name}, kNow, kYear);
    ASSERT_FALSE(identity) << name;
    EXPECT_EQ(identity.error().code, ErrorCode::kInvalid);
  }
  EXPECT_EQ(make_self_signed({}, kNow, kYear).error().what,
            "a certificate needs a host name or an address");
}

TEST(CheckIdentity, ReportsTheFault) {
  const auto one = make_self_signed({"a"}, kNow, kYear);
  const auto other = make_self_signed({"a"}, kNow, kYear);
  const auto fault_of = [](const TlsIdentity& identity) {
    const auto checked = check_identity(identity);
    return checked ? "" : checked.error().what;
  };

  EXPECT_EQ(fault_of({.certificate = "", .key = one->key}),
            "the server's certificate cannot be read");
  EXPECT_EQ(fault_of({.certificate = one->key, .key = one->key}),
            "the server's certificate cannot be read");
  EXPECT_EQ(fault_of({.certificate = one->certificate, .key = "rubbish"}),
            "the key of the server's certificate cannot be read, or has a pass phrase");
  EXPECT_EQ(fault_of({.certificate = one->certificate, .key = other->key}),
            "the key does not match the server's certificate");
}

TEST(CheckIdentity, TakesAChain) {
  const auto one = make_self_signed({"a"}, kNow, kYear);
  const auto other = make_self_signed({"b"}, kNow, kYear);

  EXPECT_TRUE(
      check_identity({.certificate = one->certificate + other->certificate, .key = one->key}));
  EXPECT_EQ(*fingerprint_of(one->certificate + other->certificate),
            *fingerprint_of(one->certificate));
}

TEST(Fingerprint, IsOfTheCertificateAndNothingElse) {
  EXPECT_EQ(fingerprint_of("rubbish").error().code, ErrorCode::kInvalid);
}

TEST(Fingerprint, IsReadAsPeopleWriteIt) {
  const std::string digits = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
  const std::string readable = readable_fingerprint(digits);

  EXPECT_EQ(readable.substr(0, 8), "00:11:22");
  EXPECT_EQ(readable.substr(readable.size() - 8), "DD:EE:FF");
  for (const std::string& text :
       {digits, readable, "sha256:" + digits, "SHA256:" + readable, " " + readable + "\n"}) {
    const auto parsed = parse_fingerprint(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, digits);
  }
}

TEST(Fingerprint, RefusesInvalidTexts) {
  EXPECT_EQ(parse_fingerprint("AB:CD").error().what,
            "invalid fingerprint 'AB:CD': a SHA-256 fingerprint has 64 hexadecimal digits");
  EXPECT_EQ(parse_fingerprint("no").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(parse_fingerprint("").error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace muster::http
