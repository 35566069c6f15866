#include "engine/shim/follow_wire.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::engine {
namespace {

const std::vector<FollowRecord> kTold{
    {.kind = FollowKind::kRunning, .bytes = R"({"pid":1})"},
    {.kind = FollowKind::kAnswered},
    {.kind = FollowKind::kLog, .offset = uint64_t{5} << 33, .bytes = std::string("a\0\xff\n", 4)},
    {.kind = FollowKind::kMetrics, .offset = 200, .bytes = std::string(kMaxFollowRecord, 'm')},
    {.kind = FollowKind::kExit, .bytes = R"({"code":3})"}};

std::string stream_of(const std::vector<FollowRecord>& records) {
  std::string stream;
  for (const FollowRecord& record : records) stream += encode(record);
  return stream;
}

std::vector<FollowRecord> records_in(FollowReader& reader) {
  std::vector<FollowRecord> records;
  while (auto record = reader.next()) records.push_back(*std::move(record));
  return records;
}

TEST(FollowWire, HasItsHeaderAsItIsWrittenDown) {
  const std::string record =
      encode({.kind = FollowKind::kLog, .offset = 0x0102030405060708, .bytes = "abc"});

  EXPECT_EQ(record, std::string("l\x0b\0\0\0\x08\7\6\5\4\3\2\1", 13) + "abc");
}

TEST(FollowWire, RecordsComeOutAsTheyWentInWhereverTheStreamIsCut) {
  const std::string stream = stream_of(kTold);
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{16}, size_t{4099}, stream.size()}) {
    FollowReader reader;
    std::vector<FollowRecord> records;
    for (size_t at = 0; at < stream.size(); at += piece) {
      reader.add(std::string_view(stream).substr(at, piece));
      for (FollowRecord& record : records_in(reader)) records.push_back(std::move(record));
    }
    EXPECT_EQ(records, kTold) << "in pieces of " << piece;
    EXPECT_FALSE(reader.is_broken());
  }
}

TEST(FollowWire, AStreamThatEndsInARecordHasThoseBeforeIt) {
  const std::string stream = stream_of(kTold);
  FollowReader reader;

  reader.add(std::string_view(stream).substr(0, stream.size() - 1));

  EXPECT_EQ(records_in(reader).size(), kTold.size() - 1);
  EXPECT_FALSE(reader.is_broken());
}

TEST(FollowWire, WhatWasHandedOutIsNotKept) {
  FollowReader reader;
  for (int i = 0; i < 100; ++i) {
    for (const FollowRecord& record : kTold) {
      reader.add(encode(record));
      EXPECT_EQ(records_in(reader).size(), 1U);
      EXPECT_EQ(reader.kept(), 0U);
    }
  }
}

TEST(FollowWire, WhatIsNoRecordEndsTheStreamForGood) {
  std::string too_long = encode(kTold[0]);
  too_long[3] = 1;
  too_long[4] = 1;
  for (const std::string& bad :
       {too_long, base::encode_frame('l', "1234567"), base::encode_frame('?', "12345678"),
        std::string("sh: not found, not at all\n")}) {
    FollowReader reader;
    reader.add(encode(kTold[0]) + bad);

    EXPECT_EQ(records_in(reader), std::vector<FollowRecord>{kTold[0]});
    EXPECT_TRUE(reader.is_broken());
    reader.add(encode(kTold[0]));
    EXPECT_EQ(reader.next(), std::nullopt);
  }
}

}  // namespace
}  // namespace muster::engine
