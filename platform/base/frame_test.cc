#include "base/frame.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::base {
namespace {

constexpr size_t kMost = 1000;

TEST(Frame, ConsistsOfTagLengthAndBytes) {
  EXPECT_EQ(encode_frame('i', "ls\n"), std::string("i\3\0\0\0ls\n", 8));
  EXPECT_EQ(encode_frame('e', ""), std::string("e\0\0\0\0", 5));
}

TEST(Frame, CanBeWrittenPieceByPiece) {
  std::string out = "before";
  const size_t begin = begin_frame(out, 'b');
  out += std::string(300, 'x');
  end_frame(out, begin);

  EXPECT_EQ(out, "before" + encode_frame('b', std::string(300, 'x')));
}

TEST(FrameReader, ReturnsTheFramesHoweverTheStreamIsSplit) {
  const std::string longest(kMost, '\xff');
  const std::string stream =
      encode_frame('a', "one") + encode_frame('b', "") + encode_frame('c', longest);
  const std::vector<std::string> sent{"aone", "b", "c" + longest};
  for (const size_t piece : {size_t{1}, size_t{4}, size_t{7}, stream.size()}) {
    FrameReader reader(kMost);
    std::vector<std::string> read;
    for (size_t at = 0; at < stream.size(); at += piece) {
      reader.add(std::string_view(stream).substr(at, piece));
      for (auto frame = reader.front(); frame && *frame; frame = reader.front()) {
        read.push_back((*frame)->tag + std::string((*frame)->bytes));
        reader.pop(**frame);
      }
    }
    EXPECT_EQ(read, sent) << "in pieces of " << piece;
    EXPECT_EQ(reader.waiting(), 0U);
    EXPECT_EQ(reader.kept(), 0U);
  }
}

TEST(FrameReader, RefusesAnOversizedFrame) {
  for (const std::string& head : {std::string("a\xe9\3\0\0", 5),  // 1001
                                  std::string("a\0\0\0\2", 5),    // most significant byte first
                                  std::string("sh: not found\n")}) {
    FrameReader reader(kMost);
    reader.add(encode_frame('a', "good"));
    reader.add(head);
    const auto good = reader.front();
    ASSERT_TRUE(good && *good);
    reader.pop(**good);

    for (int again = 0; again < 2; ++again) {
      const auto bad = reader.front();
      ASSERT_FALSE(bad) << head;
      EXPECT_EQ(bad.error().code, ErrorCode::kInvalid);
      reader.add(encode_frame('a', "good"));
    }
  }
}

}  // namespace
}  // namespace muster::base
