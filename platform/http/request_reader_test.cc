#include "http/request_reader.h"

#include <gtest/gtest.h>

#include <random>

namespace muster::http {
namespace {

using RequestProgress = RequestReader::Progress;

constexpr std::string_view kPost =
    "POST /v1/jobs?x=1 HTTP/1.1\r\nHost: h\r\nX-Two: a\r\nx-two: b\r\nContent-Length: "
    "5\r\n\r\nhello";

/// The status that bytes are refused with; 0 where they are not.
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
  ASSERT_EQ(reader.put(std::string(kPost) + "GET /next HTTP/1.1\r\n"), RequestProgress::kDone);
  EXPECT_EQ(reader.take().request.path, "/v1/jobs");

  reader.keep("\r\n");

  ASSERT_EQ(reader.put({}), RequestProgress::kDone);
  EXPECT_EQ(reader.take().request.path, "/next");
}

TEST(RequestReader, JoinsABodyThatComesInChunks) {
  RequestReader reader({});

  ASSERT_EQ(reader.put("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
                       "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n"),
            RequestProgress::kDone);

  EXPECT_EQ(reader.take().request.body, "abcdefg");
}

TEST(RequestReader, ShowsHeadToTheHandlerAsGet) {
  RequestReader reader({});
  ASSERT_EQ(reader.put("HEAD / HTTP/1.1\r\n\r\n"), RequestProgress::kDone);

  const ReadRequest read = reader.take();

  EXPECT_EQ(read.request.method, "GET");
  EXPECT_TRUE(read.head_only);
}

TEST(RequestReader, KnowsWhatAnOldClientCannot) {
  RequestReader reader({});
  ASSERT_EQ(reader.put("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n"), RequestProgress::kDone);

  const ReadRequest read = reader.take();

  EXPECT_FALSE(read.keep_alive);
  EXPECT_FALSE(read.may_chunk);
}

TEST(RequestReader, SaysOnceThatTheClientWaitsForLeaveToSend) {
  RequestReader reader({});
  ASSERT_EQ(reader.put("POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n"),
            RequestProgress::kMore);

  EXPECT_TRUE(reader.wants_continue());
  EXPECT_FALSE(reader.wants_continue());
}

TEST(RequestReader, RefusesHeadersPastTheLimit) {
  const Limits limits{.header_bytes = 1000};
  const std::string wide = "GET / HTTP/1.1\r\nx: " + std::string(5000, 'x') + "\r\n\r\n";

  EXPECT_EQ(refusal_of(wide, limits), 431);
  EXPECT_EQ(refusal_of(wide.substr(0, 2000), limits), 431);  // and does not wait for their end
  EXPECT_EQ(refusal_of("GET /" + std::string(2000, 'x'), limits), 431);
  EXPECT_EQ(refusal_of("GET / HTTP/1.1\r\nx: " + std::string(900, 'x') + "\r\n\r\n", limits), 0);
}

TEST(RequestReader, RefusesABodyPastTheLimitBeforeItComes) {
  const Limits limits{.body_bytes = 10};

  EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\ncontent-length: 11\r\n\r\n", limits), 413);
  EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\ncontent-length: 1073741824\r\n\r\n", limits), 413);
  EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\ncontent-length: 10\r\n\r\n", limits), 0);
  EXPECT_EQ(refusal_of("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
                       "6\r\nabcdef\r\n6\r\nabcdef\r\n",
                       limits),
            413);
}

TEST(RequestReader, RefusesTargetsThatNobodyNeeds) {
  EXPECT_EQ(refusal_of("GET /" + std::string(40'000, 'x') + " HTTP/1.1\r\n\r\n"), 414);
  EXPECT_EQ(refusal_of("GET /v1/jobs/a%2F..%2Fb HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET /v1/jobs/%00 HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(refusal_of("GET /v1/../jobs HTTP/1.1\r\n\r\n"), 400);
}

TEST(RequestReader, RefusesWhatIsNoHttp) {
  for (const std::string_view bytes : std::initializer_list<std::string_view>{
           "\r\n\r\nnonsense\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/2.0\r\n\r\n",
           "GET / HTTP/1.1\r\nx\r\n\r\n", "G\x01T / HTTP/1.1\r\n\r\n", "GET /%zz HTTP/1.1\r\n\r\n",
           "GET nowhere HTTP/1.1\r\n\r\n", "POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
           "POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
           "POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
           "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
           std::string_view("GET / HTTP/1.1\r\nx: a\0b\r\n\r\n", 26),
           "GET / HTTP/1.1\r\nx : a\r\n\r\n", "GET / HTTP/1.1\r\nx: a\rb\r\n\r\n"}) {
    EXPECT_EQ(refusal_of(bytes), 400) << bytes;
  }
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
}  // namespace muster::http
