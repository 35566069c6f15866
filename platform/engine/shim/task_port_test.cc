#include "engine/shim/task_port.h"

#include <gtest/gtest.h>

namespace muster::engine {

namespace {

TEST(Greeting, IsRecognisedByItsFirstWord) {
  EXPECT_EQ(read_greeting("SSH-2.0-OpenSSH_9.2p1 Debian\r\n"), Greeting::kSsh);
  EXPECT_EQ(read_greeting("SSH-2.0-"), Greeting::kSsh);
  EXPECT_EQ(read_greeting("MUSTER-RSH"), Greeting::kRsh);
  EXPECT_EQ(read_greeting("MUSTER-RSH 1\n"), Greeting::kRsh);
}

TEST(Greeting, MayComeInPieces) {
  for (const char* piece : {"", "S", "SSH-2.0", "M", "MUSTER-RS"}) {
    EXPECT_EQ(read_greeting(piece), Greeting::kUnfinished) << piece;
  }
}

TEST(Greeting, OfAnotherServerIsNotRecognised) {
  for (const char* text : {"HTTP/1.1 400", "SSH-1.5-x", "muster-rsh", "Exceeded MaxStartups\r\n"}) {
    EXPECT_EQ(read_greeting(text), Greeting::kNone) << text;
  }
}

}  // namespace

}  // namespace muster::engine
