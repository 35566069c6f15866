#include "engine/container/stream_frames.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::engine {
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

TEST(FrameReader, TellsTheTwoOutputsApart) {
  FrameReader reader;
  Taken taken;

  ASSERT_TRUE(reader.put(frame(1, "out ") + frame(2, "err ") + frame(1, "more"), taken.into()));

  EXPECT_EQ(taken.output, "out more");
  EXPECT_EQ(taken.error, "err ");
  EXPECT_TRUE(reader.at_border());
}

TEST(FrameReader, FramesMayComeInAnyPieces) {
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

TEST(FrameReader, PartsOfAFrameAreHandedOnBeforeItIsWhole) {
  FrameReader reader;
  Taken taken;

  ASSERT_TRUE(reader.put(frame(1, "whole").substr(0, 10), taken.into()));

  EXPECT_EQ(taken.output, "wh");
  EXPECT_FALSE(reader.at_border());
}

TEST(FrameReader, WhatTheEngineItselfComplainsOfIsAnError) {
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

TEST(FrameReader, WhatIsNotInFramesIsSaidNotToBe) {
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

TEST(FrameReader, WhoHasHadEnoughGetsNoMore) {
  FrameReader reader;
  int calls = 0;
  ASSERT_TRUE(reader.put(frame(1, "a") + frame(1, "b"), [&](std::string_view, bool) {
    ++calls;
    return false;
  }));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace muster::engine
