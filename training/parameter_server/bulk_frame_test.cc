#include "parameter_server/bulk_frame.h"

#include <gtest/gtest.h>

namespace muster::parameter_server {
namespace {

using HeadBytes = std::array<std::byte, kBulkHeadBytes>;

HeadBytes head_bytes(std::initializer_list<int> values) {
  HeadBytes bytes = {};
  std::size_t i = 0;
  for (const int value : values) bytes[i++] = static_cast<std::byte>(value);
  return bytes;
}

TEST(BulkHead, HasAFixedEncoding) {
  EXPECT_EQ(
      encode(
          {.kind = BulkKind::kPushRequest, .message_bytes = 0x0102, .value_bytes = 0x0506070800}),
      head_bytes({3, 0, 0, 0, 2, 1, 0, 0, 0, 8, 7, 6, 5, 0, 0, 0}));
}

TEST(BulkHead, IsDecodedAsItWasEncoded) {
  const BulkHead heads[] = {
      {.kind = BulkKind::kHello, .message_bytes = 11, .value_bytes = 0},
      {.kind = BulkKind::kPullRequest, .message_bytes = kMostBulkMessageBytes, .value_bytes = 0},
      {.kind = BulkKind::kPushRequest, .message_bytes = 0, .value_bytes = ~std::uint64_t{3}},
      {.kind = BulkKind::kAnswer, .message_bytes = 3, .value_bytes = 4}};
  for (const BulkHead& head : heads) EXPECT_EQ(decode_bulk_head(encode(head)), head);
}

TEST(BulkHead, IsRejectedIfNoSenderSendsIt) {
  const HeadBytes invalid[] = {
      head_bytes({0}),                                      // no kind
      head_bytes({5}),                                      // an unknown kind
      head_bytes({3, 1}),                                   // a reserved byte
      head_bytes({3, 0, 0, 1}),                             // another one
      head_bytes({2, 0, 0, 0, 1, 0, 0x40}),                 // a message of 4 MiB and a byte
      head_bytes({1, 0, 0, 0, 0, 0, 0, 0, 4}),              // a hello with values
      head_bytes({2, 0, 0, 0, 0, 0, 0, 0, 4}),              // a request for a pull with values
      head_bytes({3, 0, 0, 0, 0, 0, 0, 0, 6}),              // one and a half values
      {std::byte{0x16}, std::byte{0x03}, std::byte{0x01}},  // the start of TLS
      {std::byte{'G'}, std::byte{'E'}, std::byte{'T'}}};
  for (const HeadBytes& bytes : invalid) EXPECT_EQ(decode_bulk_head(bytes), std::nullopt);
}

}  // namespace
}  // namespace muster::parameter_server
