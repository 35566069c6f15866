#include "engine/container/json_lines.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::engine {
namespace {

TEST(JsonLines, LinesMayComeInAnyPieces) {
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

TEST(JsonLines, WhoHasHadEnoughGetsNoMore) {
  JsonLines lines;
  int calls = 0;
  ASSERT_TRUE(lines.put("1\n2\n", [&](std::string_view) {
    ++calls;
    return false;
  }));
  EXPECT_EQ(calls, 1);
}

TEST(JsonLines, ALineWithoutEndIsGivenUp) {
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
}  // namespace muster::engine
