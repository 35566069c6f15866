#include "transport/bytes.h"

#include <gtest/gtest.h>

namespace muster::collective {
namespace {

TEST(Bytes, AreReadAsWritten) {
  const Bytes bytes =
      ByteWriter().number(std::uint16_t{0x0102}).number(std::int32_t{-5}).text("host").take();

  ByteReader reader(bytes);

  EXPECT_EQ(bytes[0], std::byte{2}) << "little-endian";
  EXPECT_EQ(reader.number<std::uint16_t>(), 0x0102);
  EXPECT_EQ(reader.number<std::int32_t>(), -5);
  EXPECT_EQ(reader.text(), "host");
  EXPECT_TRUE(reader.ok() && reader.at_end());
}

TEST(Bytes, ThatEndTooEarlyReadAsZeros) {
  const Bytes whole = ByteWriter().number(std::uint32_t{7}).text("host").take();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    ByteReader reader(ByteView(whole).first(length));
    static_cast<void>(reader.number<std::uint32_t>());
    EXPECT_EQ(reader.text(), "");
    EXPECT_FALSE(reader.ok()) << length;
  }
}

TEST(Bytes, StayUnreadableAfterTheFirstShortage) {
  const Bytes bytes = ByteWriter().number(std::uint16_t{1}).take();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.number<std::uint32_t>(), 0u);
  EXPECT_EQ(reader.number<std::uint16_t>(), 0u);
  EXPECT_FALSE(reader.ok());
}

}  // namespace
}  // namespace muster::collective
