#include "base/bytes.h"

#include <gtest/gtest.h>

namespace muster::base {
namespace {

std::string encoded(std::string_view bytes) {
  std::string text;
  append_base64(text, bytes);
  return text;
}

// The examples of RFC 4648, section 10.
TEST(Base64, MatchesTheExamplesOfTheStandard) {
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foo"), "Zm9v");
  EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
}

TEST(Base64, RestoresEveryByte) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) {
    bytes += static_cast<char>(byte);
    EXPECT_EQ(from_base64(encoded(bytes)), bytes);
  }
}

TEST(Base64, RefusesInvalidText) {
  for (const char* text : {"Z", "Zg", "Zg=", "====", "Zg==Zg==", "Z g=", "Zm9\n", "Zm8_", "=Zm9"}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
}

}  // namespace
namespace {

TEST(ByteQueue, ReturnsBytesInTheOrderOfAppending) {
  ByteQueue queue;
  queue.add("one ");
  queue.add("two");

  queue.take(2);
  queue.add(" three");

  EXPECT_EQ(queue.front(), "e two three");
  EXPECT_EQ(queue.size(), 11U);
  queue.take(11);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.kept(), 0U);
}

TEST(ByteQueue, KeepsLittleOfTheTakenBytesHoweverManyPass) {
  constexpr size_t kPiece = 1000;
  const std::string piece(kPiece, 'x');
  ByteQueue queue;
  queue.add(piece);
  for (int i = 0; i < 1000; ++i) {  // the queue is never empty
    queue.add(piece);
    queue.take(kPiece);
    ASSERT_LE(queue.kept(), 3 * kPiece);
  }
  EXPECT_EQ(queue.front(), piece);
}

}  // namespace
}  // namespace muster::base
