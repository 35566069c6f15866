#include "engine/shim/attachments.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace muster::engine {

namespace {

// --- messages on the socket

TEST(AttachWire, MessagesSurviveEncodingAndDecoding) {
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

TEST(AttachWire, RejectsMalformedPackets) {
  for (const char* packet : {"", "?", "e!", "r", "r24", "r0 80", "r24 65536", "r-1 80", "r24 80 ",
                             "r24 eighty", "l", "l-1", "l1x", "l18446744073709551616"}) {
    EXPECT_FALSE(decode_attach(packet)) << packet;
  }
}

TEST(AttachWire, APacketHoldsAWholePiece) {
  EXPECT_LE(encode(AttachOutput{.bytes = std::string(kAttachPiece, 'x')}).size(), kAttachPacket);
}

// --- the program's end

TEST(ProgramInput, IsAPipeOrATerminalAsInThePlan) {
  const auto none = make_program_input({});
  const auto pipe = make_program_input({.input = true});
  const auto terminal = make_program_input({.input = true, .terminal = true});

  ASSERT_TRUE(none && pipe && terminal);
  EXPECT_FALSE(none->theirs || none->to_program || none->from_program);
  EXPECT_TRUE(pipe->theirs && pipe->to_program && !pipe->from_program);
  EXPECT_EQ(::isatty(pipe->theirs.get()), 0);
  EXPECT_TRUE(terminal->theirs && terminal->to_program && terminal->from_program);
  EXPECT_EQ(::isatty(terminal->theirs.get()), 1);
}

TEST(TerminalText, ConvertsCrlfToNewlines) {
  TerminalText text;

  EXPECT_EQ(text.plain("one\r\ntwo\r"), "one\ntwo");
  EXPECT_EQ(text.plain("\nthree\r"), "\nthree");
  EXPECT_EQ(text.plain("50 %\r100 %\r\r\n"), "\r50 %\r100 %\r\n");
}

}  // namespace

}  // namespace muster::engine
