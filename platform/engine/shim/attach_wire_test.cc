#include "engine/shim/attach_wire.h"

#include <gtest/gtest.h>

namespace muster::engine {
namespace {

TEST(AttachWire, ReadsBackWhatItWrites) {
  const std::string bytes("a\0\xff\n", 4);
  for (const AttachMessage& message :
       {AttachMessage(AttachInput{bytes}), AttachMessage(AttachInputEnd{}),
        AttachMessage(AttachSize{.rows = 24, .columns = 65'535}),
        AttachMessage(AttachOutput{.bytes = bytes}),
        AttachMessage(AttachOutput{.bytes = bytes, .is_error = true}),
        AttachMessage(AttachLeftOut{18'446'744'073'709'551'615U})}) {
    const auto read = decode_attach(encode(message));

    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, message);
  }
}

TEST(AttachWire, RefusesWhatIsNoMessage) {
  for (const char* packet : {"", "?", "e!", "r", "r24", "r0 80", "r24 65536", "r-1 80", "r24 80 ",
                             "r24 eighty", "l", "l-1", "l1x", "l18446744073709551616"}) {
    EXPECT_FALSE(decode_attach(packet)) << packet;
  }
}

TEST(AttachWire, HasRoomForAWholePieceInAPacket) {
  EXPECT_LE(encode(AttachOutput{.bytes = std::string(kAttachPiece, 'x')}).size(), kAttachPacket);
}

}  // namespace
}  // namespace muster::engine
