#include "http/server_sent_events.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace muster::http {
namespace {

using Events = std::vector<std::pair<std::string, std::string>>;

/// The events of a stream that arrives in these pieces.
Events decode(const std::vector<std::string_view>& pieces) {
  Events events;
  EventDecoder decoder;
  for (const std::string_view piece : pieces) {
    EXPECT_TRUE(decoder.put(piece, [&](std::string_view event, std::string_view data) {
      events.emplace_back(event, data);
      return true;
    }));
  }
  return events;
}

Events decode(std::string_view stream) {
  return decode(std::vector<std::string_view>{stream});
}

TEST(ServerSentEvents, AreReadBackAsTheyWereWritten) {
  std::string stream;
  append_event(stream, "log", R"({"text":"a: b"})");
  append_event(stream, "end", "two\nlines");
  append_event(stream, "empty", "");

  EXPECT_EQ(stream,
            "event: log\ndata: {\"text\":\"a: b\"}\n\n"
            "event: end\ndata: two\ndata: lines\n\n"
            "event: empty\ndata: \n\n");
  EXPECT_EQ(decode(stream),
            (Events{{"log", R"({"text":"a: b"})"}, {"end", "two\nlines"}, {"empty", ""}}));
}

TEST(ServerSentEvents, NoLineBreakOfTheDataStartsAFieldOfItsOwn) {
  std::string stream;
  append_event(stream, "log", "a\r\n\r\nevent: end\rdata: forged");

  EXPECT_EQ(decode(stream), (Events{{"log", "a\n\nevent: end\ndata: forged"}}));
}

TEST(ServerSentEvents, MeanTheSameWhereverTheStreamIsCut) {
  const std::string stream =
      "\xEF\xBB\xBF: hello\n\n"
      "event: log\r\ndata: one\r\n\r\n"
      "data:two\rdata: more\r\r"
      ": ping\n\n"
      "id: 7\nretry: 10\nevent: end\ndata:  spaced\ndata\n\n"
      "data: never ended";
  const Events whole = decode(stream);
  ASSERT_EQ(whole, (Events{{"log", "one"}, {"message", "two\nmore"}, {"end", " spaced\n"}}));

  std::vector<std::string_view> bytes;
  for (size_t cut = 0; cut < stream.size(); ++cut) {
    const std::string_view text = stream;
    EXPECT_EQ(decode({text.substr(0, cut), text.substr(cut)}), whole) << "cut at " << cut;
    bytes.push_back(text.substr(cut, 1));
  }
  EXPECT_EQ(decode(bytes), whole);
}

TEST(ServerSentEvents, AnEventWithoutDataIsNone) {
  EXPECT_EQ(decode("event: log\n\ndata: x\n\n"), (Events{{"message", "x"}}));
  EXPECT_EQ(decode(std::string(kPing)), Events{});
}

TEST(ServerSentEvents, EndWhereTheReaderHasEnough) {
  EventDecoder decoder;
  int seen = 0;

  EXPECT_FALSE(decoder.put("data: 1\n\ndata: 2\n\n", [&](auto, auto) {
    ++seen;
    return false;
  }));

  EXPECT_EQ(seen, 1);
}

TEST(ServerSentEvents, CarryIdsWithEventsAndAlone) {
  std::string stream;
  append_event(stream, "log", "one", "1");
  append_event(stream, "log", "two");
  append_event_id(stream, "3.5");

  EXPECT_EQ(stream,
            "id: 1\nevent: log\ndata: one\n\n"
            "event: log\ndata: two\n\n"
            "id: 3.5\n\n");
  EventDecoder decoder;
  std::vector<std::string> ids;
  EXPECT_EQ(decoder.last_id(), "");
  decoder.put(stream, [&](auto, auto) {
    ids.push_back(decoder.last_id());
    return true;
  });
  EXPECT_EQ(ids, (std::vector<std::string>{"1", "1"}));
  EXPECT_EQ(decoder.last_id(), "3.5");
}

TEST(ServerSentEvents, HaveAnIdOnlyOnceTheyAreComplete) {
  EventDecoder decoder;
  const auto ignore = [](auto, auto) { return true; };

  decoder.put("id: 1\ndata: x\n", ignore);
  EXPECT_EQ(decoder.last_id(), "");
  decoder.put("\n", ignore);
  EXPECT_EQ(decoder.last_id(), "1");
  decoder.put(std::string_view("id: a\0b\n\n", 9), ignore);
  EXPECT_EQ(decoder.last_id(), "1");
}

}  // namespace
}  // namespace muster::http
