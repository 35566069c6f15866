#include "http/message_reader.h"

#include <gtest/gtest.h>

#include <random>

#include "http/head.h"

namespace muster::http {

using base::ErrorCode;

namespace {

using RequestProgress = RequestReader::Progress;

constexpr std::string_view kPost =
    "POST /v1/jobs?x=1 HTTP/1.1\r\nHost: h\r\nX-Two: a\r\nx-two: b\r\nContent-Length: "
    "5\r\n\r\nhello";

/// The status of the refusal of these bytes; 0: they are accepted.
int refusal_of(std::string_view bytes, const Limits& limits = {}) {
  RequestReader reader(limits);
  return reader.put(bytes) == RequestProgress::kFault ? reader.fault().status : 0;
}

TEST(RequestReader, ReadsTheSameRequestWhereverItIsCut) {
  for (size_t cut = 0; cut < kPost.size(); ++cut) {
    RequestReader reader({});
    ASSERT_EQ(reader.put(kPost.substr(0, cut)), RequestProgress::kMore) << cut;
    EXPECT_EQ(reader.in_request(), cut > 0);
    ASSERT_EQ(reader.put(kPost.substr(cut)), RequestProgress::kDone) << cut;

    const ReadRequest read = reader.take();
    EXPECT_EQ(read.request.method, "POST");
    EXPECT_EQ(read.request.path, "/v1/jobs");
    EXPECT_EQ(read.request.query.at("x"), "1");
    EXPECT_EQ(read.request.headers.at("x-two"), "a, b");
    EXPECT_EQ(read.request.body, "hello");
    EXPECT_TRUE(read.keep_alive);
    EXPECT_FALSE(reader.in_request());
  }
}

TEST(RequestReader, KeepsWhatFollowsForTheNextRequest) {
  RequestReader reader({});
  ASSERT_EQ(reader.put(std::string(kPost) + "GET /next HTTP/1.1\r\nhost: h\r\n"),
            RequestProgress::kDone);
  EXPECT_EQ(reader.take().request.path, "/v1/jobs");

  reader.keep("\r\n");

  ASSERT_EQ(reader.put({}), RequestProgress::kDone);
  EXPECT_EQ(reader.take().request.path, "/next");
}

TEST(RequestReader, ReportsWhetherThePathOrTheQueryIsMalformed) {
  for (const auto& [target, part] : {std::pair{"/v1/jobs?text=%zz", "query is malformed"},
                                     std::pair{"/v1/jobs?text=%00", "query is malformed"},
                                     std::pair{"/v1/jo%2Fbs?text=%zz", "encoded slashes"}}) {
    RequestReader reader({});
    ASSERT_EQ(reader.put("GET " + std::string(target) + " HTTP/1.1\r\nhost: h\r\n\r\n"),
              RequestProgress::kFault);
    EXPECT_EQ(reader.fault().status, 400);
    EXPECT_NE(reader.fault().what.find(part), std::string::npos) << reader.fault().what;
  }
}

TEST(ReasonPhrase, HasTheRedirectOfTheRoot) {
  EXPECT_EQ(reason_phrase(303), "See Other");
}

TEST(RequestReader, JoinsABodyThatComesInChunks) {
  RequestReader reader({});

  ASSERT_EQ(reader.put("POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n"
                       "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n"),
            RequestProgress::kDone);

  EXPECT_EQ(reader.take().request.body, "abcdefg");
}

TEST(RequestReader, ShowsHeadToTheHandlerAsGet) {
  RequestReader reader({});
  ASSERT_EQ(reader.put("HEAD / HTTP/1.1\r\nhost: h\r\n\r\n"), RequestProgress::kDone);

  const ReadRequest read = reader.take();

  EXPECT_EQ(read.request.method, "GET");
  EXPECT_TRUE(read.head_only);
}

TEST(RequestReader, AppliesTheRulesOfHttp10ToOldClients) {
  RequestReader reader({});
  ASSERT_EQ(reader.put("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n"), RequestProgress::kDone);

  const ReadRequest read = reader.take();

  EXPECT_FALSE(read.keep_alive);
  EXPECT_FALSE(read.may_chunk);
}

TEST(RequestReader, ReportsOnceThatTheClientExpects100Continue) {
  RequestReader reader({});
  ASSERT_EQ(
      reader.put("POST / HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n"),
      RequestProgress::kMore);

  EXPECT_TRUE(reader.awaits_continue());
  EXPECT_FALSE(reader.awaits_continue());
}

TEST(RequestReader, RefusesHeadersPastTheLimit) {
  const Limits limits{.header_bytes = 1000};
  const std::string wide = "GET / HTTP/1.1\r\nhost: h\r\nx: " + std::string(5000, 'x') + "\r\n\r\n";

  EXPECT_EQ(refusal_of(wide, limits), 431);
  EXPECT_EQ(refusal_of(wide.substr(0, 2000), limits), 431);  // and does not wait for their end
  EXPECT_EQ(refusal_of("GET /" + std::string(2000, 'x'), limits), 431);
  EXPECT_EQ(
      refusal_of("GET / HTTP/1.1\r\nhost: h\r\nx: " + std::string(900, 'x') + "\r\n\r\n", limits),
      0);
}

TEST(RequestReader, RefusesABodyPastTheLimitBeforeItComes) {
  const Limits limits{.body_bytes = 10};

  EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 11\r\n\r\n", limits), 413);
  EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 1073741824\r\n\r\n", limits),
            413);
  EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 10\r\n\r\n", limits), 0);
  EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n"
                       "6\r\nabcdef\r\n6\r\nabcdef\r\n",
                       limits),
            413);
}

TEST(RequestReader, RefusesLongTargetsAndAmbiguousPaths) {
  EXPECT_EQ(refusal_of("GET /" + std::string(40'000, 'x') + " HTTP/1.1\r\nhost: h\r\n\r\n"), 414);
  EXPECT_EQ(refusal_of(std::string(17, 'X') + " / HTTP/1.1\r\nhost: h\r\n\r\n"), 501);
  EXPECT_EQ(refusal_of(std::string(16, 'X') + " / HTTP/1.1\r\nhost: h\r\n\r\n"), 0);
  EXPECT_EQ(refusal_of("GET /v1/jobs/a%2F..%2Fb HTTP/1.1\r\nhost: h\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET /v1/jobs/%00 HTTP/1.1\r\nhost: h\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET /v1/../jobs HTTP/1.1\r\nhost: h\r\n\r\n"), 400);
}

TEST(RequestReader, RefusesInvalidHttp) {
  for (const std::string_view bytes : std::initializer_list<std::string_view>{
           "\r\n\r\nnonsense\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/2.0\r\n\r\n",
           "GET / HTTP/1.1\r\nhost: h\r\nx\r\n\r\n", "G\x01T / HTTP/1.1\r\n\r\n",
           "GET /%zz HTTP/1.1\r\nhost: h\r\n\r\n", "GET nowhere HTTP/1.1\r\n\r\n",
           "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: -1\r\n\r\n",
           "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
           "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
           "POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
           std::string_view("GET / HTTP/1.1\r\nhost: h\r\nx: a\0b\r\n\r\n", 35),
           "GET / HTTP/1.1\r\nhost: h\r\nx : a\r\n\r\n",
           "GET / HTTP/1.1\r\nhost: h\r\nx: a\rb\r\n\r\n"}) {
    EXPECT_EQ(refusal_of(bytes), 400) << bytes;
  }
}

TEST(RequestReader, RefusesATransferCodingThatWouldHideARequestInABody) {
  for (const std::string coding :
       {"xchunked", "identity", "gzip", "\"chunked\"", "chunked, identity", "chunked, chunked",
        "chunked\r\ntransfer-encoding: chunked", "gzip\r\ntransfer-encoding: chunked", ""}) {
    EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: " + coding +
                         "\r\n\r\nDELETE /v1/jobs/a HTTP/1.1\r\nhost: h\r\n\r\n"),
              400)
        << coding;
  }
  EXPECT_EQ(refusal_of("POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: CHUNKED\r\n\r\n0\r\n\r\n"),
            0);
}

TEST(RequestReader, RequiresOneHost) {
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET / HTTP/1.0\r\nhost: a\r\nhost: b\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nhost: a/b\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nhost: a b\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nhost: me@a\r\n\r\n"), 400);

  EXPECT_EQ(refusal_of("GET / HTTP/1.0\r\n\r\n"), 0);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nhost:\r\n\r\n"), 0);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nhost: [::1]:7443\r\n\r\n"), 0);
}

TEST(RequestReader, RefusesAFoldedHeaderWhereverItIsCut) {
  for (const std::string bytes : {"GET / HTTP/1.1\r\n x: y\r\nhost: h\r\n\r\n",
                                  "GET / HTTP/1.1\r\nhost: h\r\nx: a\r\n b\r\n\r\n",
                                  "GET / HTTP/1.1\r\nhost: h\r\nx: a\r\n\tb\r\ny: c\r\n\r\n"}) {
    for (size_t cut = 0; cut < bytes.size(); ++cut) {
      RequestReader reader({});
      const bool refused = reader.put(bytes.substr(0, cut)) == RequestProgress::kFault ||
                           reader.put(bytes.substr(cut)) == RequestProgress::kFault;
      EXPECT_TRUE(refused) << bytes << " cut at " << cut;
    }
  }
}

TEST(RequestReader, ReadsABodyWhoseLinesBeginWithSpaces) {
  RequestReader reader({});

  ASSERT_EQ(reader.put("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 8\r\n\r\na:\r\n b\r\n"),
            RequestProgress::kDone);

  EXPECT_EQ(reader.take().request.body, "a:\r\n b\r\n");
}

TEST(RequestReader, KeepsNoEndlessChunkLineAndNoEndlessTrailers) {
  constexpr std::string_view kHead =
      "POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n";
  for (const std::string_view start :
       {"2;", "0000", "1\r\na\r\n3;x=", "0\r\nx: ", "0\r\nx: y\r\n"}) {
    RequestReader reader({});
    ASSERT_EQ(reader.put(std::string(kHead) + std::string(start)), RequestProgress::kMore);
    const std::string piece =
        start == "0000" ? std::string(1024, '0') : "x:" + std::string(1020, 'a');

    int pieces = 0;
    while (pieces < 1024 && reader.put(piece) == RequestProgress::kMore) ++pieces;

    EXPECT_LE(pieces, 16) << start;
    EXPECT_EQ(reader.fault().status, 400) << start;
  }
}

TEST(RequestReader, TakesNoHeaderFromTheTrailers) {
  RequestReader reader({});

  ASSERT_EQ(reader.put("POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n"
                       "1\r\na\r\n0\r\nauthorization: Bearer x\r\n\r\n"),
            RequestProgress::kDone);

  const Request request = reader.take().request;
  EXPECT_EQ(request.body, "a");
  EXPECT_FALSE(request.headers.contains("authorization"));
}

TEST(RequestReader, ShowsTheHeadOnceBeforeTheBodyIsHere) {
  RequestReader reader({});
  ASSERT_EQ(reader.put(kPost.substr(0, 20)), RequestProgress::kMore);
  EXPECT_FALSE(reader.take_head());
  ASSERT_EQ(reader.put(kPost.substr(20, kPost.size() - 22)), RequestProgress::kMore);

  const auto head = reader.take_head();

  ASSERT_TRUE(head);
  EXPECT_EQ(head->path, "/v1/jobs");
  EXPECT_EQ(head->headers.at("x-two"), "a, b");
  EXPECT_EQ(head->body, "");
  EXPECT_FALSE(reader.take_head());
  ASSERT_EQ(reader.put(kPost.substr(kPost.size() - 2)), RequestProgress::kDone);
  EXPECT_FALSE(reader.take_head());
  EXPECT_EQ(reader.take().request.body, "hello");
}

TEST(RequestReader, SurvivesAnyBytes) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(kPost);
    for (int change = 0; change < 4; ++change) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    RequestReader reader({});
    for (const char byte : bytes) {
      const RequestProgress progress = reader.put({&byte, 1});
      if (progress == RequestProgress::kFault) break;
      if (progress == RequestProgress::kDone) reader.take();
    }
  }
}

}  // namespace
namespace {

using ResponseProgress = ResponseReader::Progress;

constexpr std::string_view kChunked =
    "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nX-A: 1\r\ntransfer-encoding: chunked\r\n\r\n"
    "3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n";

TEST(ResponseReader, ReadsTheSameResponseWhereverItIsCut) {
  for (size_t cut = 1; cut < kChunked.size(); ++cut) {
    ResponseReader reader(false, {});
    ASSERT_EQ(*reader.put(kChunked.substr(0, cut)), ResponseProgress::kMore) << cut;
    ASSERT_EQ(*reader.put(kChunked.substr(cut)), ResponseProgress::kDone) << cut;

    EXPECT_TRUE(reader.keep_alive());
    const Response response = reader.take();
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.content_type, "text/plain");
    EXPECT_EQ(response.headers.at("x-a"), "1");
    EXPECT_EQ(response.body, "abc0123456789abcdef");
  }
}

TEST(ResponseReader, SkipsInterimResponsesWhereverTheyAreCut) {
  const std::string all =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n" +
      std::string(kChunked);
  for (const bool head_only : {false, true}) {
    const size_t size = head_only ? all.find("3\r\nabc") : all.size();
    for (size_t cut = 1; cut < size; ++cut) {
      ResponseReader reader(head_only, {}, 19);
      ASSERT_EQ(*reader.put(std::string_view(all).substr(0, cut)), ResponseProgress::kMore) << cut;
      ASSERT_EQ(*reader.put(std::string_view(all).substr(cut, size - cut)), ResponseProgress::kDone)
          << cut;

      const Response response = reader.take();
      EXPECT_EQ(response.status, 200);
      EXPECT_EQ(response.headers.count("link"), 0U);
      EXPECT_EQ(response.body, head_only ? "" : "abc0123456789abcdef");
    }
  }
}

TEST(ResponseReader, ASwitchOfProtocolsIsAFinalResponse) {
  ResponseReader reader(false, {});

  ASSERT_EQ(*reader.put("HTTP/1.1 101 Switching Protocols\r\n\r\nbytes"), ResponseProgress::kDone);

  EXPECT_EQ(reader.status(), 101);
  EXPECT_EQ(reader.rest(), "bytes");
}

TEST(ResponseReader, HandsTheBodyOnAsItComes) {
  std::string seen;
  ResponseReader reader(false, [&](std::string_view piece) {
    seen += piece;
    return true;
  });

  ASSERT_EQ(*reader.put(kChunked.substr(0, kChunked.find("abc") + 3)), ResponseProgress::kMore);
  EXPECT_EQ(seen, "abc");

  ASSERT_EQ(*reader.put(kChunked.substr(kChunked.find("abc") + 3)), ResponseProgress::kDone);
  EXPECT_EQ(seen, "abc0123456789abcdef");
  EXPECT_EQ(reader.take().body, "");
}

TEST(ResponseReader, StopsWhereTheReceiverHasEnough) {
  ResponseReader reader(false, [](std::string_view) { return false; });

  EXPECT_EQ(*reader.put(kChunked), ResponseProgress::kLeft);
}

TEST(ResponseReader, KeepsTheBodyOfARefusal) {
  ResponseReader reader(false, [](std::string_view) {
    ADD_FAILURE() << "a refusal's body was handed on";
    return true;
  });

  ASSERT_EQ(*reader.put("HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno"),
            ResponseProgress::kDone);

  EXPECT_EQ(reader.take().body, "no");
}

TEST(ResponseReader, ExpectsNoBodyInAnswerToHead) {
  ResponseReader reader(true, {});

  EXPECT_EQ(*reader.put("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n"), ResponseProgress::kDone);
}

TEST(ResponseReader, DistinguishesAnEndFromABrokenConnection) {
  const auto code_after = [](std::string_view bytes) {
    ResponseReader reader(false, {});
    EXPECT_TRUE(bytes.empty() || reader.put(bytes));
    const auto end = reader.put_end();
    return end ? "" : std::string(to_string(end.error().code)) + ": " + end.error().what;
  };

  EXPECT_EQ(code_after("HTTP/1.1 200 OK\r\n\r\nto the end"), "");
  EXPECT_EQ(code_after(""), "unavailable: the server closed the connection without an answer");
  for (const std::string_view half :
       {"HTTP/1.1 2", "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"}) {
    EXPECT_EQ(code_after(half),
              "unavailable: the server closed the connection in the middle of its answer");
  }
}

TEST(ResponseReader, RefusesInvalidHttp) {
  ResponseReader reader(false, {});

  EXPECT_EQ(reader.put("SSH-2.0-OpenSSH_9.2\r\n").error().code, ErrorCode::kInternal);
}

TEST(Head, NoHeaderCanForgeAnother) {
  const Response response{.headers = {{"x", "1\r\nforged: 2"}}};

  const std::string head = response_head(response, Framing::kLength, true);

  EXPECT_EQ(head,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 0\r\n"
            "x: 1  forged: 2\r\n\r\n");
}

TEST(Head, AnAnswerWithoutContentHasNoLength) {
  EXPECT_EQ(response_head({.status = 204}, Framing::kLength, false),
            "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
}

}  // namespace
}  // namespace muster::http
