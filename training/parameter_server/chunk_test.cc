#include "parameter_server/chunk.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace muster::parameter_server {
namespace {

using Bytes = std::vector<std::byte>;

Bytes message(std::size_t bytes) {
  const ChunkHead head(bytes);
  Bytes message(head.bytes().begin(), head.bytes().end());
  for (std::size_t i = 0; i < bytes; ++i) message.push_back(static_cast<std::byte>(i * 31));
  return message;
}

// The data of a message that arrives in pieces; nullopt if the reader rejects it.
std::optional<Bytes> read_in_pieces(const Bytes& message, std::size_t piece) {
  ChunkReader reader;
  Bytes data;
  for (std::size_t at = 0; at < message.size(); at += piece) {
    const auto part =
        reader.take(std::span(message).subspan(at, std::min(piece, message.size() - at)));
    if (!part) return std::nullopt;
    data.insert(data.end(), part->begin(), part->end());
  }
  if (!reader.is_complete()) return std::nullopt;
  return data;
}

TEST(Chunk, IsReadAsWrittenInPiecesOfAnyLength) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{127},
                                  std::size_t{128}, std::size_t{16'384}, kChunkBytes}) {
    const Bytes whole = message(bytes);
    for (const std::size_t piece :
         {std::size_t{1}, std::size_t{3}, std::size_t{4'096}, whole.size()}) {
      const auto data = read_in_pieces(whole, piece);
      ASSERT_TRUE(data) << bytes << " bytes in pieces of " << piece;
      EXPECT_EQ(data->size(), bytes);
      EXPECT_TRUE(std::equal(data->rbegin(), data->rend(), whole.rbegin()));
    }
  }
}

TEST(Chunk, RejectsInvalidMessages) {
  Bytes longer = message(4);
  longer.push_back(std::byte{0});
  Bytes shorter = message(4);
  shorter.pop_back();
  for (const Bytes& odd : {Bytes{}, Bytes{std::byte{0x0a}, std::byte{0}}, longer, shorter,
                           message(kChunkBytes + 1), Bytes{std::byte{0x12}},
                           Bytes{std::byte{0x12}, std::byte{0x80}, std::byte{0x80}, std::byte{0x80},
                                 std::byte{0x80}, std::byte{0}}}) {
    EXPECT_FALSE(read_in_pieces(odd, 1)) << odd.size() << " bytes";
    EXPECT_FALSE(read_in_pieces(odd, odd.size() + 1)) << odd.size() << " bytes";
  }
}

TEST(Filler, FillsBuffersInOrderAndRejectsExcessBytes) {
  std::vector<float> first(2);
  std::vector<float> second(1);
  const std::vector<float> sent = {1, 2, 3};
  const auto bytes = std::as_bytes(std::span(sent));
  Filler filler({std::span(first), std::span<float>(), std::span(second)});
  for (std::size_t at = 0; at < bytes.size(); at += 5) {
    ASSERT_TRUE(filler.take(bytes.subspan(at, std::min<std::size_t>(5, bytes.size() - at))));
  }
  EXPECT_EQ(filler.filled(), 12U);
  EXPECT_EQ(first, (std::vector<float>{1, 2}));
  EXPECT_EQ(second, std::vector<float>{3});
  EXPECT_FALSE(filler.take(bytes.first(1)));
}

}  // namespace
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Finite, FindsTheFirstNonFiniteValue) {
  EXPECT_EQ(first_not_finite({}), std::nullopt);
  const std::vector<float> extremes = {0, -0.0F, std::numeric_limits<float>::max(),
                                       std::numeric_limits<float>::lowest(),
                                       std::numeric_limits<float>::denorm_min()};
  EXPECT_EQ(first_not_finite(extremes), std::nullopt);
  for (const float odd : {kNan, -kNan, kInfinity, -kInfinity}) {
    for (const std::size_t at : {0, 7, 999}) {
      std::vector<float> values(1'000, 1);
      values[at] = odd;
      values[999] = odd;
      EXPECT_EQ(first_not_finite(values), at);
    }
  }
}

TEST(Finite, ChecksEveryValueOfAnyNumber) {
  for (std::size_t count = 1; count < 40; ++count) {
    for (std::size_t at = 0; at < count; ++at) {
      std::vector<float> values(count, 1);
      EXPECT_EQ(first_not_finite(values), std::nullopt);
      values[at] = kNan;
      EXPECT_EQ(first_not_finite(values), at) << "of " << count;
    }
  }
}

TEST(Finite, NamesTheWorkerAndTheElement) {
  EXPECT_EQ(not_finite(kNan, "element 7 of 'w'", 3).message,
            "the gradient of worker 3 has a NaN as element 7 of 'w', so the push was not applied");
  EXPECT_NE(not_finite(-kInfinity, "", 3).message.find("has an infinity"), std::string::npos);
  EXPECT_EQ(not_finite(kNan, "", 3).rank, 3);
}

}  // namespace
}  // namespace muster::parameter_server
