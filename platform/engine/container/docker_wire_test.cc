#include "engine/container/docker_wire.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::engine {
namespace {

TEST(ChooseApiVersion, TakesTheHighestThatBothSupport) {
  EXPECT_EQ(*choose_api_version("1.40"), "1.40");
  EXPECT_EQ(*choose_api_version("1.41"), "1.41");
  EXPECT_EQ(*choose_api_version("1.51"), "1.51");
  EXPECT_EQ(*choose_api_version("1.99"), kNewestApi);
  EXPECT_EQ(*choose_api_version("2.0"), kNewestApi);
}

TEST(ChooseApiVersion, ReportsAnEngineThatIsTooOld) {
  const auto chosen = choose_api_version("1.9");
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code, base::ErrorCode::kUnavailable);
  EXPECT_EQ(chosen.error().what,
            "it supports the Docker Engine API up to version 1.9, and Muster requires version 1.40 "
            "or later");
  EXPECT_EQ(chosen.error().advice, "update it to Docker 19.03 or Podman 4, or later");
}

TEST(ChooseApiVersion, RejectsAMalformedVersion) {
  for (const char* text : {"", "one", "1", "1.", ".41", "1.41.2", "-1.41", "1.-4", "1.41 "}) {
    const auto chosen = choose_api_version(text);
    ASSERT_FALSE(chosen) << text;
    EXPECT_EQ(chosen.error().code, base::ErrorCode::kUnavailable);
  }
}

TEST(ParseHttpDate, ReadsOnlyTheFormOfServers) {
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), 784111777);
  EXPECT_EQ(parse_http_date("Thu, 01 Jan 1970 00:00:00 GMT"), 0);
  EXPECT_EQ(parse_http_date("Thu, 29 Feb 2024 23:59:59 GMT"), 1709251199);
  for (const char* text : {"", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
                           "Sun, 06 Now 1994 08:49:37 GMT", "Sun, 31 Feb 1994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET",
                           "Sun, -6 Nov 1994 08:49:37 GMT"}) {
    EXPECT_FALSE(parse_http_date(text)) << text;
  }
}

}  // namespace
namespace {

std::string frame(char kind, const std::string& bytes) {
  const size_t size = bytes.size();
  std::string header{kind, 0, 0, 0};
  for (const size_t shift : {24U, 16U, 8U, 0U}) header += static_cast<char>(size >> shift);
  return header + bytes;
}

struct Taken {
  std::string output;
  std::string error;

  FrameReader::OnOutput into() {
    return [this](std::string_view bytes, bool is_error) {
      (is_error ? error : output) += bytes;
      return true;
    };
  }
};

TEST(FrameReader, SeparatesTheTwoOutputs) {
  FrameReader reader;
  Taken taken;

  ASSERT_TRUE(reader.put(frame(1, "out ") + frame(2, "err ") + frame(1, "more"), taken.into()));

  EXPECT_EQ(taken.output, "out more");
  EXPECT_EQ(taken.error, "err ");
  EXPECT_TRUE(reader.at_border());
}

TEST(FrameReader, ReadsFramesFromAnyPieces) {
  const std::string whole = frame(1, std::string(300, 'a')) + frame(2, "b") + frame(1, "") +
                            frame(1, std::string("\0\1\2", 3));
  for (size_t size = 1; size <= whole.size(); ++size) {
    FrameReader reader;
    Taken taken;
    for (size_t at = 0; at < whole.size(); at += size) {
      ASSERT_TRUE(reader.put(std::string_view(whole).substr(at, size), taken.into()));
    }
    EXPECT_EQ(taken.output, std::string(300, 'a') + std::string("\0\1\2", 3)) << size;
    EXPECT_EQ(taken.error, "b") << size;
    EXPECT_TRUE(reader.at_border()) << size;
  }
}

TEST(FrameReader, PassesOnPartsOfAFrame) {
  FrameReader reader;
  Taken taken;

  ASSERT_TRUE(reader.put(frame(1, "whole").substr(0, 10), taken.into()));

  EXPECT_EQ(taken.output, "wh");
  EXPECT_FALSE(reader.at_border());
}

TEST(FrameReader, AMessageOfTheEngineIsAnError) {
  FrameReader reader;
  Taken taken;
  ASSERT_TRUE(reader.put(frame(3, "trouble") + frame(0, "echo"), taken.into()));
  EXPECT_EQ(taken.error, "trouble");
  EXPECT_EQ(taken.output, "echo");
}

TEST(FrameReader, TheSizeOfAFrameIsUnsigned) {
  FrameReader reader;
  Taken taken;
  ASSERT_TRUE(reader.put(std::string("\1\0\0\0\xff\xff\xff\xff", 8) + "x", taken.into()));
  EXPECT_EQ(taken.output, "x");
  EXPECT_FALSE(reader.at_border());
}

TEST(FrameReader, ReportsOutputWithoutFrames) {
  for (const std::string& bytes : {std::string("plain text"), std::string("\4\0\0\0\0\0\0\1", 8),
                                   std::string("\1\0\0\1\0\0\0\1", 8)}) {
    FrameReader reader;
    Taken taken;

    const auto put = reader.put(bytes, taken.into());

    ASSERT_FALSE(put);
    EXPECT_TRUE(put.error().what.starts_with("the engine's output is not in frames"));
    EXPECT_EQ(taken.output + taken.error, "");
  }
}

TEST(FrameReader, StopsOnRequest) {
  FrameReader reader;
  int calls = 0;
  ASSERT_TRUE(reader.put(frame(1, "a") + frame(1, "b"), [&](std::string_view, bool) {
    ++calls;
    return false;
  }));
  EXPECT_EQ(calls, 1);
}

}  // namespace
namespace {

TEST(JsonLines, ReadsLinesFromAnyPieces) {
  const std::string whole = "{\"a\":1}\r\n\n{}\n{\"rest\":1}";
  for (size_t size = 1; size <= whole.size(); ++size) {
    JsonLines lines;
    std::vector<std::string> taken;
    for (size_t at = 0; at < whole.size(); at += size) {
      ASSERT_TRUE(lines.put(std::string_view(whole).substr(at, size), [&](std::string_view line) {
        taken.emplace_back(line);
        return true;
      }));
    }
    EXPECT_EQ(taken, (std::vector<std::string>{"{\"a\":1}", "{}"})) << size;
    EXPECT_EQ(lines.take_rest(), "{\"rest\":1}") << size;
    EXPECT_EQ(lines.take_rest(), "") << size;
  }
}

TEST(JsonLines, StopsOnRequest) {
  JsonLines lines;
  int calls = 0;
  ASSERT_TRUE(lines.put("1\n2\n", [&](std::string_view) {
    ++calls;
    return false;
  }));
  EXPECT_EQ(calls, 1);
}

TEST(JsonLines, RejectsAnEndlessLine) {
  JsonLines lines;
  base::Result<void> put;
  size_t sent = 0;
  const std::string piece(1 << 20, '{');
  while (put && sent < (64U << 20U)) {
    put = lines.put(piece, [](std::string_view) { return true; });
    sent += piece.size();
  }
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().what, "the engine sends a line of more than 4194304 bytes");
}

}  // namespace
namespace {

struct RecordedPull {
  std::vector<PullProgress> progress;
  PullStream stream{[this](const PullProgress& one) { progress.push_back(one); }};
};

TEST(ParseImageName, SeparatesATagFromThePortOfARegistry) {
  const std::vector<std::pair<std::string, ImageName>> cases{
      {"debian", {"debian", "latest"}},
      {"debian:12", {"debian", "12"}},
      {"horovod/horovod:0.28", {"horovod/horovod", "0.28"}},
      {"host:5000/team/image", {"host:5000/team/image", "latest"}},
      {"host:5000/team/image:2", {"host:5000/team/image", "2"}},
      {"debian@sha256:00ff", {"debian", "sha256:00ff"}},
      {"host:5000/a:1@sha256:00ff", {"host:5000/a", "sha256:00ff"}},
      {"", {"", "latest"}}};
  for (const auto& [text, name] : cases) EXPECT_EQ(parse_image_name(text), name) << text;
}

TEST(PullStream, AddsUpItsLayers) {
  RecordedPull recorded;
  ASSERT_TRUE(recorded.stream.put(
      "{\"status\":\"Pulling from team/image\",\"id\":\"latest\"}\r\n"
      "{\"status\":\"Pulling fs layer\",\"progressDetail\":{},\"id\":\"aa\"}\r\n"
      "{\"status\":\"Downloading\",\"progressDetail\":{\"current\":10,\"total\":100},\"id\":\"aa\"}"
      "\n"
      "{\"status\":\"Downloading\",\"progressDetail\":{\"current\":5,\"total\":50},\"id\":\"bb\"}\n"
      "{\"status\":\"Download complete\",\"progressDetail\":{},\"id\":\"aa\"}\n"
      "{\"status\":\"Extracting\",\"progressDetail\":{\"current\":1,\"total\":9},\"id\":\"aa\"}\n"
      "{\"status\":\"Digest: sha256:0\"}\n"));
  ASSERT_TRUE(recorded.stream.put_end());

  ASSERT_EQ(recorded.progress.size(), 7U);
  EXPECT_EQ(recorded.progress[1].all_bytes, 0);
  EXPECT_EQ(recorded.progress[2].status, "Downloading");
  EXPECT_EQ(recorded.progress[2].done_bytes, 10);
  EXPECT_EQ(recorded.progress[3].done_bytes, 15);
  EXPECT_EQ(recorded.progress[3].all_bytes, 150);
  EXPECT_EQ(recorded.progress.back().done_bytes, 105);
  EXPECT_EQ(recorded.progress.back().all_bytes, 150);
  EXPECT_EQ(recorded.stream.failure(), "");
}

TEST(PullStream, FindsAnErrorWithinASuccessfulAnswer) {
  RecordedPull docker;
  ASSERT_TRUE(
      docker.stream.put("{\"status\":\"Pulling\"}\n{\"errorDetail\":{\"message\":\"no "
                        "space left on device\"},\"error\":\"short\"}\n"));
  EXPECT_EQ(docker.stream.failure(), "no space left on device");

  RecordedPull old;
  ASSERT_TRUE(old.stream.put("{\"error\":\"only this\"}"));
  ASSERT_TRUE(old.stream.put_end());
  EXPECT_EQ(old.stream.failure(), "only this");
}

TEST(PullStream, RejectsTextThatIsNotJson) {
  for (const char* text : {"<html>\n", "{\"status\":[1]}\n", "{\"status\":\"half\n",
                           "{\"progressDetail\":{\"current\":\"ten\"},\"status\":\"Downloading\","
                           "\"id\":\"a\"}\n"}) {
    RecordedPull recorded;
    EXPECT_FALSE(recorded.stream.put(text)) << text;
  }
  RecordedPull half;
  ASSERT_TRUE(half.stream.put("{\"status\":"));
  EXPECT_FALSE(half.stream.put_end());
}

}  // namespace
}  // namespace muster::engine
