#include "http/response_reader.h"

#include <gtest/gtest.h>

#include "http/head.h"

namespace muster::http {
namespace {

using base::ErrorCode;
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

TEST(ResponseReader, TellsAnEndFromABreak) {
  const auto code_after = [](std::string_view bytes) {
    ResponseReader reader(false, {});
    EXPECT_TRUE(bytes.empty() || reader.put(bytes));
    const auto end = reader.put_end();
    return end ? "" : std::string(to_string(end.error().code)) + ": " + end.error().what;
  };

  EXPECT_EQ(code_after("HTTP/1.1 200 OK\r\n\r\nto the end"), "");
  EXPECT_EQ(code_after(""), "unavailable: the server went away without an answer");
  for (const std::string_view half :
       {"HTTP/1.1 2", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"}) {
    EXPECT_EQ(code_after(half), "unavailable: the server went away in the midst of its answer");
  }
}

TEST(ResponseReader, RefusesWhatIsNoHttp) {
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
