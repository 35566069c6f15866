// The client against servers that behave, and against raw sockets that do not.
#include "http/async_client.h"

#include <sys/un.h>

#include <optional>

#include "http/test_raw_server.h"
#include "http/test_server.h"
#include "http/test_tls.h"

namespace muster::http {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using std::chrono::milliseconds;

constexpr milliseconds kSoon{50};  ///< a limit that is to be passed

class AsyncClientTest : public testing::Test {
 protected:
  bool run_until(const std::function<bool()>& is_done) {
    bool late = false;
    const auto alarm = loop_.after(kPatience, [&] {
      late = true;
      loop_.stop();
    });
    awaited_ = &is_done;
    while (!is_done() && !late) loop_.run();
    awaited_ = nullptr;
    return is_done();
  }
  void look() {
    if (awaited_ != nullptr && (*awaited_)()) loop_.stop();
  }

  static AsyncClient::Answered into(std::optional<Result<Response>>& answer,
                                    AsyncClientTest& test) {
    return [&](Result<Response> what) {
      EXPECT_FALSE(answer) << "it has answered twice";
      answer.emplace(std::move(what));
      test.look();
    };
  }

  Result<Response> ask(AsyncClient& client, AsyncRequest request, const AsyncLimits& limits = {}) {
    std::optional<Result<Response>> answer;
    const AsyncCall call = client.send(std::move(request), limits, into(answer, *this));
    if (run_until([&] { return answer.has_value(); })) return *std::move(answer);
    return Error{.code = ErrorCode::kTimeout, .what = "no answer came"};
  }

  Result<Response> ask(const std::filesystem::path& socket, AsyncRequest request = {},
                       const AsyncLimits& limits = {}) {
    AsyncClient client(loop_, socket, "the server");
    return ask(client, std::move(request), limits);
  }

  /// Time in which a limit that ran would have passed.
  void wait_longer_than_soon() {
    bool waited = false;
    const auto timer = loop_.after(3 * kSoon, [&] {
      waited = true;
      look();
    });
    EXPECT_TRUE(run_until([&] { return waited; }));
  }

  /// What a stream has told.
  struct Heard {
    std::string bytes;
    bool ended = false;
    std::unique_ptr<RawStream> stream;
    std::optional<Result<Upgraded>> upgraded;
  };
  AsyncCall upgrade(AsyncClient& client, Heard& heard, const AsyncLimits& limits = {}) {
    return client.upgrade({.method = "POST",
                           .target = "/attach",
                           .headers = {{"connection", "Upgrade"}, {"upgrade", "tcp"}}},
                          limits,
                          {.on_bytes =
                               [&](std::string_view bytes) {
                                 heard.bytes += bytes;
                                 look();
                               },
                           .on_end =
                               [&] {
                                 EXPECT_FALSE(heard.ended);
                                 heard.ended = true;
                                 look();
                               },
                           .on_drain = [&] { look(); }},
                          [&](Result<Upgraded> upgraded) {
                            if (upgraded) heard.stream = std::move(upgraded->stream);
                            heard.upgraded.emplace(std::move(upgraded));
                            look();
                          });
  }

  base::EventLoop loop_;
  const std::function<bool()>* awaited_ = nullptr;
};

Response echo(const Request& request) {
  Response answer{.body = request.method + " " + request.path + " " + request.body};
  answer.headers["x-seen"] = request.headers.contains("x-mine") ? request.headers.at("x-mine") : "";
  return answer;
}

// --- answers ---

TEST_F(AsyncClientTest, SendsARequestAndGetsItsAnswer) {
  const TestServer server(
      [](const Request& request, const Respond& respond) { respond(echo(request)); });

  const auto answer = ask(
      server.socket(),
      {.method = "PUT", .target = "/a%20b?x=1", .headers = {{"x-mine", "yes"}}, .body = "body"});

  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "PUT /a b body");
  EXPECT_EQ(answer->headers.at("x-seen"), "yes");
}

TEST_F(AsyncClientTest, ManyRequestsAtOnceEachGetTheirOwnAnswer) {
  const TestServer server(
      [](const Request& request, const Respond& respond) { respond(echo(request)); });
  AsyncClient client(loop_, server.socket(), "the server");
  std::vector<std::optional<Result<Response>>> answers(100);
  std::vector<AsyncCall> calls;
  size_t count = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    calls.push_back(
        client.send({.target = "/" + std::to_string(i)}, {}, [&, i](Result<Response> answer) {
          answers[i].emplace(std::move(answer));
          ++count;
          look();
        }));
  }

  ASSERT_TRUE(run_until([&] { return count == answers.size(); }));

  for (size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(*answers[i]) << answers[i]->error().to_string();
    EXPECT_EQ((*answers[i])->body, "GET /" + std::to_string(i) + " ");
  }
}

TEST_F(AsyncClientTest, ARefusalIsAnAnswerWithItsBody) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnone");
    connection.read_to_the_end();  // kept open: the length says where it ends
  });

  const auto answer = ask(server.path());

  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->status, 404);
  EXPECT_EQ(answer->body, "none");
}

TEST_F(AsyncClientTest, OfAHeadRequestTheHeadersAreTheAnswer) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\nx-fact: yes\r\n\r\n");
    connection.read_to_the_end();
  });

  const auto answer = ask(server.path(), {.method = "HEAD"});

  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->headers.at("x-fact"), "yes");
}

TEST_F(AsyncClientTest, ABodyIsSentInChunksAsItIsProduced) {
  std::string seen;
  RawServer server([&](RawConnection& connection) {
    seen = connection.read_to("0\r\n\r\n");
    connection.send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  });
  std::vector<std::string> pieces{"", "last piece", "first"};

  const auto answer =
      ask(server.path(), {.method = "PUT", .next_piece = [&]() -> Result<std::string> {
                            std::string piece = pieces.back();
                            pieces.pop_back();
                            return piece;
                          }});

  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_NE(seen.find("transfer-encoding: chunked\r\n"), std::string::npos) << seen;
  EXPECT_TRUE(seen.ends_with("\r\n\r\n5\r\nfirst\r\na\r\nlast piece\r\n0\r\n\r\n")) << seen;
  EXPECT_TRUE(pieces.empty());
}

TEST_F(AsyncClientTest, ASourceThatFailsEndsItsRequestWithItsReason) {
  RawServer server([](RawConnection& connection) { connection.read_to_the_end(); });

  const auto answer = ask(
      server.path(), {.method = "PUT", .next_piece = []() -> Result<std::string> {
                        return Error{.code = ErrorCode::kExhausted, .what = "the source is broken"};
                      }});

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().what, "the source is broken");
}

TEST_F(AsyncClientTest, AnAnswerThatComesBeforeTheWholeRequestIsHeard) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 403 Forbidden\r\ncontent-length: 9\r\n\r\nread-only");
    // Leaves with most of the body unread.
  });

  const auto answer =
      ask(server.path(), {.method = "PUT", .next_piece = []() -> Result<std::string> {
                            return std::string(1 << 20, 'x');
                          }});

  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_EQ(answer->status, 403);
  EXPECT_EQ(answer->body, "read-only");
}

// --- bodies in pieces ---

TEST_F(AsyncClientTest, ABodyIsHandedOnAsItComesAndItsHeadBefore) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    connection.send("3\r\nend\r\n0\r\n\r\n");
    connection.read_to_the_end();
  });
  AsyncClient client(loop_, server.path(), "the server");
  std::string told;
  std::optional<Result<Response>> answer;

  const AsyncCall call = client.stream(
      {}, {},
      [&](std::string_view piece) {
        told += piece;
        return true;
      },
      into(answer, *this), [&] { told += "head:"; });

  ASSERT_TRUE(run_until([&] { return answer.has_value(); }));
  ASSERT_TRUE(*answer) << answer->error().to_string();
  EXPECT_EQ(told, "head:firstend");
  EXPECT_EQ((*answer)->body, "");
}

TEST_F(AsyncClientTest, TheBodyOfARefusalIsKeptAlsoWhereBodiesAreHandedOn) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 500 Oh\r\ncontent-length: 3\r\n\r\nwhy");
    connection.read_to_the_end();
  });
  AsyncClient client(loop_, server.path(), "the server");
  std::optional<Result<Response>> answer;

  const AsyncCall call = client.stream(
      {}, {},
      [](std::string_view) {
        ADD_FAILURE();
        return true;
      },
      into(answer, *this), [] { ADD_FAILURE(); });

  ASSERT_TRUE(run_until([&] { return answer.has_value(); }));
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->body, "why");
}

TEST_F(AsyncClientTest, WhileABodyIsPausedTheServerWaits) {
  constexpr size_t kWhole = 32 << 20;
  std::promise<void> sent;
  RawServer server([&](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\ncontent-length: " + std::to_string(kWhole) + "\r\n\r\n");
    connection.send(std::string(kWhole, 'x'));
    sent.set_value();
  });
  AsyncClient client(loop_, server.path(), "the server");
  size_t got = 0;
  std::optional<Result<Response>> answer;
  AsyncCall call;
  call = client.stream(
      {}, {},
      [&](std::string_view piece) {
        if (got == 0) call.pause(true);
        got += piece.size();
        look();
        return true;
      },
      into(answer, *this));
  ASSERT_TRUE(run_until([&] { return got > 0; }));
  const size_t before = got;
  wait_longer_than_soon();

  EXPECT_EQ(got, before);
  auto all_sent = sent.get_future();
  EXPECT_EQ(all_sent.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  call.pause(false);
  ASSERT_TRUE(run_until([&] { return answer.has_value(); }));
  EXPECT_TRUE(*answer) << answer->error().to_string();
  EXPECT_EQ(got, kWhole);
}

TEST_F(AsyncClientTest, WhoHoldsABodyBackDoesNotWaitForIt) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n");
    connection.read_to_the_end();
  });
  AsyncClient client(loop_, server.path(), "the server");
  std::string got;
  std::optional<Result<Response>> answer;
  AsyncCall call;
  call = client.stream(
      {}, {.silence = kSoon},
      [&](std::string_view piece) {
        got += piece;
        call.pause(true);
        look();
        return true;
      },
      into(answer, *this));
  ASSERT_TRUE(run_until([&] { return !got.empty(); }));
  wait_longer_than_soon();
  EXPECT_FALSE(answer);

  call.pause(false);

  ASSERT_TRUE(run_until([&] { return answer.has_value(); }));
  EXPECT_FALSE(*answer);
}

TEST_F(AsyncClientTest, WhoHasHadEnoughOfABodyGetsItsAnswer) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\n\r\nmuch more");
    connection.read_to_the_end();
  });
  AsyncClient client(loop_, server.path(), "the server");
  std::optional<Result<Response>> answer;

  const AsyncCall call =
      client.stream({}, {}, [](std::string_view) { return false; }, into(answer, *this));

  ASSERT_TRUE(run_until([&] { return answer.has_value(); }));
  EXPECT_TRUE(*answer);
}

// --- bad luck ---

TEST_F(AsyncClientTest, WhereNobodyListensItIsSaidWhere) {
  const base::TestFolder folder;
  const auto missing = ask(folder / "none");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(missing.error().what, "the server cannot be reached: there is no socket '" +
                                      (folder / "none").string() + "'");

  const auto dead = folder / "dead";
  {
    const base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    dead.string().copy(address.sun_path, sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  const auto refused = ask(dead);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
}

TEST_F(AsyncClientTest, AServerThatNeverAnswersIsGivenUp) {
  RawServer server([](RawConnection& connection) { connection.read_to_the_end(); });

  const auto answer = ask(server.path(), {}, {.answer = kSoon});

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(answer.error().what, "the server does not answer within 50 ms");
}

TEST_F(AsyncClientTest, AServerThatDribblesIsGivenUpAllTheSame) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n");
    while (connection.send("x")) {
    }
  });

  const auto answer = ask(server.path(), {}, {.answer = kSoon});

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
}

TEST_F(AsyncClientTest, AServerWhoseQueueIsFullIsTriedAgainUntilTheTimeIsUp) {
  const base::TestFolder folder;
  const auto path = (folder / "full").string();
  const base::UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  std::vector<base::UniqueFd> waiting;
  for (auto fd = try_to_connect_to(path); fd; fd = try_to_connect_to(path)) {
    waiting.push_back(*std::move(fd));
  }

  const auto answer = ask(std::filesystem::path(path), {}, {.connect = kSoon});

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().what, "the server does not accept a connection within 50 ms");
}

TEST_F(AsyncClientTest, ABodyThatFallsSilentIsGivenUp) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n");
    connection.read_to_the_end();
  });
  AsyncClient client(loop_, server.path(), "the server");
  std::optional<Result<Response>> answer;

  const AsyncCall call = client.stream(
      {}, {.silence = kSoon}, [](std::string_view) { return true; }, into(answer, *this));

  ASSERT_TRUE(run_until([&] { return answer.has_value(); }));
  ASSERT_FALSE(*answer);
  EXPECT_EQ(answer->error().what, "the server says nothing more within 50 ms");
}

TEST_F(AsyncClientTest, WhatIsNoHttpIsNoAnswer) {
  RawServer server([](RawConnection& connection) {
    connection.send("SSH-2.0-OpenSSH_9.2\r\n");
    connection.read_to_the_end();
  });

  const auto answer = ask(server.path());

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInternal);
  EXPECT_TRUE(answer.error().what.starts_with("the server: ")) << answer.error().what;
}

TEST_F(AsyncClientTest, ServersThatLeaveEarlyAreSaidToHaveLeft) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "the server hangs up without an answer"},
      {"HTTP/1.1 20", "the server hangs up in the midst of its answer"},
      {"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
       "the server hangs up in the midst of its answer"},
      {"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
       "the server hangs up in the midst of its answer"}};
  for (const auto& [said, what] : cases) {
    RawServer server([&](RawConnection& connection) {
      connection.read_head();
      connection.send(said);
    });

    const auto answer = ask(server.path());

    ASSERT_FALSE(answer) << said;
    EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(answer.error().what, what) << said;
  }
}

TEST_F(AsyncClientTest, AnAnswerOfTooManyBytesIsNotKept) {
  for (const std::string& head :
       {std::string("content-length: 100000000\r\n\r\n"), std::string("\r\n")}) {
    RawServer server([&](RawConnection& connection) {
      connection.read_head();
      connection.send("HTTP/1.1 200 OK\r\n" + head);
      while (connection.send(std::string(1 << 20, 'x'))) {
      }
    });

    const auto answer = ask(server.path(), {}, {.body_bytes = 5 << 20});

    ASSERT_FALSE(answer) << head;
    EXPECT_EQ(answer.error().code, ErrorCode::kExhausted);
    EXPECT_EQ(answer.error().what, "the server: the server's answer is longer than 5242880 bytes");
  }
}

TEST_F(AsyncClientTest, AHeadWithoutEndIsRefused) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\n");
    while (connection.send("x-more: " + std::string(1000, 'x') + "\r\n")) {
    }
  });

  const auto answer = ask(server.path());

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInternal);
}

// --- dropping ---

TEST_F(AsyncClientTest, ADroppedCallTellsNothingMoreAndHangsUp) {
  std::promise<void> asked;
  std::promise<void> left;
  RawServer server([&](RawConnection& connection) {
    connection.read_head();
    asked.set_value();
    connection.read_to_the_end();
    left.set_value();
  });
  AsyncClient client(loop_, server.path(), "the server");
  AsyncCall call = client.send({}, {}, [](const Result<Response>&) { ADD_FAILURE(); });
  bool is_asked = false;
  std::thread waits([&] {
    asked.get_future().wait();
    loop_.post([&] {
      is_asked = true;
      look();
    });
  });
  ASSERT_TRUE(run_until([&] { return is_asked; }));
  waits.join();

  call = AsyncCall();

  EXPECT_EQ(left.get_future().wait_for(kPatience), std::future_status::ready);
}

TEST_F(AsyncClientTest, ACallbackMayDropItsOwnCall) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n1\r\ny\r\n");
    connection.read_to_the_end();
  });
  AsyncClient client(loop_, server.path(), "the server");
  auto call = std::make_unique<AsyncCall>();
  std::string got;
  *call = client.stream(
      {}, {},
      [&](std::string_view piece) {
        got += piece;
        call.reset();
        look();
        return true;
      },
      [](const Result<Response>&) { ADD_FAILURE(); });

  ASSERT_TRUE(run_until([&] { return call == nullptr; }));

  EXPECT_EQ(got, "x");
}

// --- streams ---

TEST_F(AsyncClientTest, AConnectionBecomesAStreamBothWaysByEitherOfTwoAnswers) {
  for (const std::string head : {"101 UPGRADED\r\nconnection: Upgrade\r\nupgrade: tcp\r\n\r\n",
                                 "200 OK\r\ncontent-type: application/x-raw\r\n\r\n"}) {
    RawServer server([&](RawConnection& connection) {
      connection.read_head();
      connection.send("HTTP/1.1 " + head + "early ");
      const std::string input = connection.read_to_the_end();
      connection.send("got " + std::to_string(input.size()));
    });
    AsyncClient client(loop_, server.path(), "the server");
    Heard heard;
    const AsyncCall call = upgrade(client, heard);
    ASSERT_TRUE(run_until([&] { return heard.upgraded.has_value(); }));
    ASSERT_TRUE(*heard.upgraded) << heard.upgraded->error().to_string();
    ASSERT_NE(heard.stream, nullptr) << head;

    heard.stream->write(std::string(5 << 20, 'i'));
    heard.stream->write("!");
    heard.stream->close_output();

    ASSERT_TRUE(run_until([&] { return heard.ended; }));
    EXPECT_EQ(heard.bytes, "early got 5242881") << head;
    EXPECT_EQ(heard.stream->waiting(), 0U);
  }
}

TEST_F(AsyncClientTest, AServerThatUpgradesToNothingSaysWhy) {
  RawServer server([](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 409 Conflict\r\ncontent-length: 7\r\n\r\nstopped");
    connection.read_to_the_end();
  });
  AsyncClient client(loop_, server.path(), "the server");
  Heard heard;

  const AsyncCall call = upgrade(client, heard);

  ASSERT_TRUE(run_until([&] { return heard.upgraded.has_value(); }));
  ASSERT_TRUE(*heard.upgraded);
  EXPECT_EQ(heard.stream, nullptr);
  EXPECT_EQ((*heard.upgraded)->answer.status, 409);
  EXPECT_EQ((*heard.upgraded)->answer.body, "stopped");
}

TEST_F(AsyncClientTest, WhatIsWrittenWaitsForAServerThatTakesNothingAndSaysWhenItIsGone) {
  std::promise<void> go;
  RawServer server([&](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 101 UPGRADED\r\n\r\n");
    go.get_future().wait();
    connection.read_to_the_end();
  });
  AsyncClient client(loop_, server.path(), "the server");
  Heard heard;
  const AsyncCall call = upgrade(client, heard);
  ASSERT_TRUE(run_until([&] { return heard.stream != nullptr; }));

  heard.stream->write(std::string(8 << 20, 'x'));
  EXPECT_GT(heard.stream->waiting(), 0U);
  go.set_value();

  EXPECT_TRUE(run_until([&] { return heard.stream->waiting() == 0; }));
  heard.stream.reset();
}

TEST_F(AsyncClientTest, AStreamLivesOnWithoutItsCallAndEndsWhenItIsDropped) {
  std::promise<std::string> left;
  RawServer server([&](RawConnection& connection) {
    connection.read_head();
    connection.send("HTTP/1.1 101 UPGRADED\r\n\r\n");
    left.set_value(connection.read_to_the_end());
  });
  AsyncClient client(loop_, server.path(), "the server");
  Heard heard;
  {
    const AsyncCall call = upgrade(client, heard);
    ASSERT_TRUE(run_until([&] { return heard.stream != nullptr; }));
  }
  heard.stream->write("still here");
  ASSERT_TRUE(run_until([&] { return heard.stream->waiting() == 0; }));

  heard.stream.reset();

  EXPECT_EQ(left.get_future().get(), "still here");
  EXPECT_FALSE(heard.ended);
}

// --- TLS ---

class AsyncClientTls : public AsyncClientTest {
 protected:
  static AsyncPlace place_of(const TlsTestServer& server, const std::string& host) {
    const auto context = client_context(server.trusted(host));
    EXPECT_TRUE(context) << context.error().to_string();
    return TlsPlace{.host = host, .port = server.port(), .context = *context};
  }
};

TEST_F(AsyncClientTls, AServerIsKnownByItsCertificateAndFoundByItsName) {
  const TlsTestServer server(
      [](const Request& request, const Respond& respond) { respond(echo(request)); });
  for (const std::string host : {"127.0.0.1", "localhost"}) {
    AsyncClient client(loop_, place_of(server, host), "the server");

    const auto answer =
        ask(client, {.method = "PUT", .target = "/x", .body = std::string(1 << 20, 'b')});

    ASSERT_TRUE(answer) << answer.error().to_string();
    EXPECT_EQ(answer->body.size(), (1U << 20U) + 7);
  }
}

TEST_F(AsyncClientTls, ACertificateOfAnotherAuthorityOrNameIsNotTrusted) {
  const Handler handler = [](const Request&, const Respond& respond) { respond({}); };
  const TlsTestServer server(handler);
  const TlsTestServer other(handler, {}, identity_of({"other.example"}));

  AsyncPlace wrong_authority = place_of(server, "localhost");
  std::get<TlsPlace>(wrong_authority).context = *client_context(other.trusted("localhost"));
  AsyncClient stranger(loop_, wrong_authority, "the server");
  const auto first = ask(stranger, {});
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, ErrorCode::kRefused);
  EXPECT_TRUE(
      first.error().what.starts_with("the certificate of the server is not to be trusted: "))
      << first.error().what;

  AsyncClient misnamed(loop_, place_of(other, "localhost"), "the server");
  const auto second = ask(misnamed, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kRefused);
}

TEST_F(AsyncClientTls, WhereNoTlsIsSpokenItIsSaid) {
  auto listener = listen_on(HostAndPort{.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(listener);
  const auto address = parse_host_and_port(*listening_at(listener->get()));
  std::thread plain([&] {
    pollfd waits{.fd = listener->get(), .events = POLLIN, .revents = 0};
    ::poll(&waits, 1, -1);
    RawConnection connection(
        base::UniqueFd(::accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC)));
    connection.send("HTTP/1.1 400 Bad Request\r\n\r\n");
    connection.read_to_the_end();
  });
  const auto context = client_context(TlsEndpoint{.host = "127.0.0.1",
                                                  .port = address->port,
                                                  .fingerprint = {},
                                                  .authorities = identity_of({"x"}).certificate});
  AsyncClient client(loop_,
                     TlsPlace{.host = "127.0.0.1", .port = address->port, .context = *context},
                     "the server");

  const auto answer = ask(client, {});
  plain.join();

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(answer.error().what.find("wrong version number"), std::string::npos)
      << answer.error().what;
}

TEST_F(AsyncClientTls, AHandshakeThatHangsIsGivenUp) {
  auto listener = listen_on(HostAndPort{.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(listener);
  const auto address = parse_host_and_port(*listening_at(listener->get()));
  const auto context = client_context(TlsEndpoint{.host = "127.0.0.1",
                                                  .port = address->port,
                                                  .fingerprint = {},
                                                  .authorities = identity_of({"x"}).certificate});
  AsyncClient client(loop_,
                     TlsPlace{.host = "127.0.0.1", .port = address->port, .context = *context},
                     "the server");

  const auto answer = ask(client, {}, {.connect = kSoon});

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().what, "the server does not accept a connection within 50 ms");
}

TEST_F(AsyncClientTls, WhereNobodyListensTheAddressIsNamed) {
  auto listener = listen_on(HostAndPort{.host = "127.0.0.1", .port = 0});
  ASSERT_TRUE(listener);
  const auto address = parse_host_and_port(*listening_at(listener->get()));
  listener->reset();
  AsyncClient client(loop_,
                     TlsPlace{.host = "127.0.0.1", .port = address->port, .context = nullptr},
                     "the server");

  const auto answer = ask(client, {});

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(answer.error().what, "the server cannot be reached: nobody answers at 127.0.0.1:" +
                                     std::to_string(address->port) + ": Connection refused");
}

TEST_F(AsyncClientTls, ANameThatNobodyHasIsSaidToHaveNoAddress) {
  AsyncClient client(loop_, TlsPlace{.host = "no-such-host.invalid", .port = 1, .context = nullptr},
                     "the server");

  const auto answer = ask(client, {}, {.connect = milliseconds(0)});

  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(answer.error().what.find("host 'no-such-host.invalid' has no address"),
            std::string::npos)
      << answer.error().what;
}

}  // namespace
}  // namespace muster::http
