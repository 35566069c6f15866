#include "engine/rsh/wire.h"

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

/// All that a reader finds in `bytes`, given to it in pieces of this size.
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

TEST(Wire, EveryFrameComesOutAsItWentInInWhateverPiecesItCame) {
  std::string bytes;
  for (const Frame& frame : kFrames) bytes += encode(frame);

  for (const size_t piece : {size_t{1}, size_t{3}, size_t{7}, bytes.size()}) {
    EXPECT_EQ(read(bytes, piece), kFrames) << piece;
  }
}

TEST(Wire, TakesNoFrameThatIsUnknownOrOfTheWrongLength) {
  for (const std::string& bytes : {
           std::string("?\0\0\0\0", 5),                    // of no kind
           std::string("d\0\0\0\0", 5),                    // of no stream
           std::string("d\0\0\0\1\3", 6),                  // of a stream there is not
           std::string("e\0\0\0\2\1x", 7),                 // an end with more behind it
           std::string("g\0\0\0\4\1\0\0\0", 9),            // a number of three bytes
           std::string("s\0\0\0\4\0\0\1\0", 9),            // signal 256
           std::string("x\0\0\0\10\0\0\1\0\0\0\0\0", 13),  // code 256
       }) {
    FrameReader reader;
    reader.add(bytes);
    EXPECT_FALSE(reader.next()) << testing::PrintToString(bytes);
  }
}

TEST(Wire, WaitsForNoFrameThatIsLongerThanAnyIs) {
  FrameReader reader;
  reader.add(std::string("c\xff\xff\xff\xff", 5));

  ASSERT_FALSE(reader.next());
}

}  // namespace
}  // namespace muster::engine::rsh
