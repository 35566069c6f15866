#include "engine/rsh/connection.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::engine::rsh {
namespace {

const std::vector<Frame> kFrames{
    Command{"hydra_pmi_proxy --control-port vm:1"},
    SendSignal{15},
    Refusal{"has no /bin/sh"},
    Ended{.code = 3, .signal = 0},
    Ended{.code = 0, .signal = 9},
    Data{Stream::kInput, std::string("a\0b\xff", 4)},
    Data{Stream::kError, ""},
    StreamEnd{Stream::kOutput},
    Grant{Stream::kError, 1'000'000},
    HangUp{Stream::kInput},
};

/// All frames that a reader finds in `bytes`, which it gets in pieces of this size.
std::vector<Frame> read(std::string_view bytes, size_t piece) {
  FrameReader reader;
  std::vector<Frame> frames;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    reader.add(bytes.substr(at, piece));
    while (true) {
      auto frame = reader.next();
      EXPECT_TRUE(frame);
      if (!frame || !*frame) break;
      frames.push_back(**frame);
    }
  }
  return frames;
}

TEST(Wire, EveryFrameIsReadFromPiecesOfAnySize) {
  std::string bytes;
  for (const Frame& frame : kFrames) bytes += encode(frame);

  for (const size_t piece : {size_t{1}, size_t{3}, size_t{7}, bytes.size()}) {
    EXPECT_EQ(read(bytes, piece), kFrames) << piece;
  }
}

TEST(Wire, RejectsUnknownFramesAndWrongLengths) {
  for (const std::string& bytes : {
           base::encode_frame('?', ""),                          // an unknown kind
           base::encode_frame('d', ""),                          // without a stream
           base::encode_frame('d', "\3"),                        // a stream that does not exist
           base::encode_frame('e', "\1x"),                       // an end with more bytes after it
           base::encode_frame('g', std::string("\1\0\0\0", 4)),  // a number of three bytes
           base::encode_frame('s', std::string("\0\1\0\0", 4)),  // signal 256
           base::encode_frame('x', std::string("\0\1\0\0\0\0\0\0", 8)),  // code 256
       }) {
    FrameReader reader;
    reader.add(bytes);
    EXPECT_FALSE(reader.next()) << testing::PrintToString(bytes);
  }
}

TEST(Wire, RejectsAFrameThatIsTooLong) {
  FrameReader reader;
  reader.add(
      std::string("\xff\xff\xff\xff"
                  "c",
                  5));

  ASSERT_FALSE(reader.next());
}

}  // namespace
}  // namespace muster::engine::rsh
