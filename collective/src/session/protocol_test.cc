#include "session/protocol.h"

#include <gtest/gtest.h>

#include <random>

namespace muster::collective::session {
namespace {

const Request kGroup{.call = {.kind = CallKind::kAllReduce,
                              .type = DataType::kFloat32,
                              .reduction = ReduceOp::kSum,
                              .count = 12},
                     .lengths = {5, 7}};
const Request kShaped{.call = kGroup.call, .lengths = {5, 7}, .shape = "float32[5], float32[7]"};

TEST(Protocol, HandOversSurviveEncodingAndDecoding) {
  const auto news = decode_hand_over(encode_new("w1", kGroup));
  ASSERT_TRUE(news);
  EXPECT_EQ(std::get<New>(*news).name, "w1");
  EXPECT_EQ(std::get<New>(*news).request, kGroup);
  EXPECT_EQ(std::get<New>(*decode_hand_over(encode_new("w1", kShaped))).request, kShaped);
  EXPECT_EQ(std::get<Again>(*decode_hand_over(encode(Again{70'000}))).id, 70'000u);
  EXPECT_TRUE(std::holds_alternative<Join>(*decode_hand_over(encode(Join{}))));
  EXPECT_TRUE(std::holds_alternative<Leave>(*decode_hand_over(encode(Leave{}))));
}

TEST(Protocol, RecordsSurviveEncodingAndDecoding) {
  const Agreed failed{.name = "x",
                      .request = kGroup,
                      .error = Error{ErrorCode::kMismatch, "what", "advice", 3, "host"}};
  const Agreed gathered{.name = "g", .request = {}, .gathered = {1, 2, 3}};
  const Batch batch{{{.id = 7, .last = 2},
                     {.id = 8, .last = 1, .news = std::make_shared<Agreed>(failed)},
                     {.id = 9, .news = std::make_shared<Agreed>(gathered)}}};
  const auto record = decode_record(encode(Record{batch}));
  ASSERT_TRUE(record);
  const auto& entries = std::get<Batch>(*record).entries;
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].id, 7u);
  EXPECT_EQ(entries[0].last, 2);
  EXPECT_FALSE(entries[0].news);
  EXPECT_EQ(entries[1].news->name, "x");
  EXPECT_EQ(entries[1].news->request, kGroup);
  EXPECT_EQ(entries[1].news->error->message, "what");
  EXPECT_EQ(entries[1].news->error->rank, 3);
  EXPECT_EQ(entries[2].news->gathered, gathered.gathered);
  EXPECT_EQ(std::get<Forget>(*decode_record(encode(Record{Forget{{1, 5}}}))).ids,
            (std::vector<std::uint32_t>{1, 5}));
  EXPECT_EQ(std::get<Left>(*decode_record(encode(Record{Left{4}}))).rank, 4);
  EXPECT_EQ(std::get<AllJoined>(*decode_record(encode(Record{AllJoined{2}}))).last, 2);
}

TEST(Protocol, ATruncatedOrChangedMessageIsRejectedOrReadAsAnother) {
  const Bytes message = encode_new("name", kShaped);
  const Batch batch{{{.id = 7, .news = std::make_shared<Agreed>(Agreed{"x", kGroup, {1}})}}};
  const Bytes record = encode(Record{batch});
  for (std::size_t length = 0; length < message.size(); ++length) {
    EXPECT_FALSE(decode_hand_over(ByteView(message).first(length)));
  }
  for (std::size_t length = 0; length < record.size(); ++length) {
    EXPECT_FALSE(decode_record(ByteView(record).first(length)));
  }
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    Bytes changed = i % 2 == 0 ? message : record;
    changed[random() % changed.size()] = static_cast<std::byte>(random());
    changed[random() % changed.size()] = static_cast<std::byte>(random());
    // The functions must return, whatever their result.
    static_cast<void>(decode_hand_over(changed));
    static_cast<void>(decode_record(changed));
  }
}

TEST(Protocol, AnOverlongMessageIsRejected) {
  Request request = kGroup;
  for (const std::size_t length : {0U, 1U, 4096U}) {
    request.shape.assign(length, 's');
    EXPECT_TRUE(decode_hand_over(encode_new(std::string(length, 'n'), request)));
  }
  EXPECT_FALSE(decode_hand_over(encode_new(std::string(4097, 'n'), kGroup)));
  request.shape.assign(4097, 's');
  EXPECT_FALSE(decode_hand_over(encode_new("n", request)));
}

TEST(Protocol, EveryShapeFitsInAMessageAndKeepsItsDifferences) {
  for (const std::size_t length : {0U, 4095U, 4096U, 4097U, 1'000'000U}) {
    std::string shape(length, 's');
    const std::string bounded = bounded_shape(shape);
    EXPECT_LE(bounded.size(), kLongestShape);
    EXPECT_EQ(bounded, length <= kLongestShape ? shape : bounded);
    if (length == 0) continue;
    shape.back() = 't';
    EXPECT_NE(bounded_shape(shape), bounded);
  }
}

}  // namespace
}  // namespace muster::collective::session
