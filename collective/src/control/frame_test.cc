#include "control/frame.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::collective {
namespace {

std::vector<Frame> frames_in(FrameReader& reader, ByteView bytes) {
  reader.feed(bytes);
  std::vector<Frame> frames;
  while (std::optional<Frame> frame = reader.next()) frames.push_back(*std::move(frame));
  return frames;
}

TEST(Frame, ArrivesInOrderAndWhole) {
  Bytes bytes;
  const std::vector<Departure> departures = {{7, 1ULL << 40}, {9, 3}};
  for (const Frame& frame : {Frame{.kind = FrameKind::kProbe, .entered = 1, .reach = 11},
                             Frame{.kind = FrameKind::kAlive, .entered = 2},
                             Frame{.kind = FrameKind::kGoodbye, .departures = departures},
                             Frame{.kind = FrameKind::kParting},
                             Frame{.kind = FrameKind::kSpread,
                                   .topic = 4,
                                   .payload = Bytes(3, std::byte{8}),
                                   .origin = 1000,
                                   .number = 5}}) {
    const Bytes one = encode(frame);
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  FrameReader reader;

  const std::vector<Frame> frames = frames_in(reader, bytes);

  ASSERT_EQ(frames.size(), 5u);
  EXPECT_EQ(frames[0].kind, FrameKind::kProbe);
  EXPECT_EQ(frames[0].reach, 11);
  EXPECT_EQ(frames[1].entered, 2u);
  EXPECT_EQ(frames[2].kind, FrameKind::kGoodbye);
  EXPECT_EQ(frames[2].departures, departures);
  EXPECT_EQ(frames[3].kind, FrameKind::kParting);
  EXPECT_EQ(frames[4].topic, 4);
  EXPECT_EQ(frames[4].payload, Bytes(3, std::byte{8}));
  EXPECT_EQ(frames[4].origin, 1000);
  EXPECT_EQ(frames[4].number, 5u);
}

TEST(Frame, CarriesTheWholeCauseOfAnAbort) {
  const Error cause{ErrorCode::kPeerLost, "rank 3 is gone", "look there", 3, "n3"};
  FrameReader reader;

  const auto frames = frames_in(reader, encode(Frame{.kind = FrameKind::kAbort, .cause = cause}));

  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].cause.code, cause.code);
  EXPECT_EQ(frames[0].cause.to_string(), cause.to_string());
  EXPECT_EQ(frames[0].cause.rank, 3);
  EXPECT_EQ(frames[0].cause.host, "n3");
}

TEST(Frame, CutsOffALongCauseInsteadOfLosingIt) {
  const Error cause{ErrorCode::kSystem, std::string(90'000, 'm'), std::string(90'000, 'a'), 1,
                    std::string(90'000, 'h')};
  FrameReader reader;

  const auto frames = frames_in(reader, encode(Frame{.kind = FrameKind::kAbort, .cause = cause}));

  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].cause.rank, 1);
  EXPECT_EQ(frames[0].cause.message, std::string(16'000, 'm'));
}

TEST(Frame, MayArriveInPiecesOfAnyLength) {
  Bytes bytes =
      encode(Frame{.kind = FrameKind::kMessage, .topic = 2, .payload = Bytes(1000, std::byte{5})});
  const Bytes last = encode(Frame{.kind = FrameKind::kMessage, .topic = 1});
  bytes.insert(bytes.end(), last.begin(), last.end());
  FrameReader reader;
  std::vector<Frame> frames;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (Frame& frame : frames_in(reader, ByteView(bytes).subspan(i, 1))) {
      frames.push_back(std::move(frame));
    }
    EXPECT_EQ(frames.size(), i < kFrameHeadBytes + 999 ? 0u : i + 1 < bytes.size() ? 1u : 2u) << i;
  }
  EXPECT_EQ(frames[0].topic, 2);
  EXPECT_EQ(frames[0].payload, Bytes(1000, std::byte{5}));
  EXPECT_TRUE(frames[1].payload.empty());
}

TEST(Frame, ThatIsInvalidBreaksTheConnection) {
  const Bytes good = encode(Frame{.kind = FrameKind::kProbe});
  Bytes other_kind = good;
  other_kind[4] = std::byte{99};
  Bytes too_long = good;
  too_long[11] = std::byte{0xff};
  Bytes too_short = good;
  too_short[8] = std::byte{4};
  const ByteView http = view_of("GET / HTTP/1.1\r\n");
  for (const ByteView bytes :
       {http, ByteView(other_kind), ByteView(too_long), ByteView(too_short)}) {
    FrameReader reader;
    EXPECT_TRUE(frames_in(reader, bytes).empty());
    EXPECT_TRUE(reader.broken());
    EXPECT_TRUE(frames_in(reader, good).empty()) << "and stays broken";
  }
}

}  // namespace
}  // namespace muster::collective
