#include "engine/shim/run_wire.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster::engine {
namespace {

std::vector<RunMessage> messages_in(RunReader& reader) {
  std::vector<RunMessage> messages;
  while (auto message = reader.next()) messages.push_back(*std::move(message));
  return messages;
}

RunMessage there_and_back(const RunMessage& message) {
  RunReader reader;
  reader.add(encode_run(message));
  auto messages = messages_in(reader);
  EXPECT_EQ(messages.size(), 1U);
  EXPECT_EQ(reader.waiting(), 0U);
  return messages.empty() ? RunMessage() : std::move(messages.front());
}

TEST(RunWire, AMessageIsAFrameTaggedWithItsKind) {
  EXPECT_EQ(encode_run(AttachInput{"ls\n"}), base::encode_frame('i', "ls\n"));
  EXPECT_EQ(encode_run(RunOutputEnd{.is_error = true}), base::encode_frame('c', "x"));
}

TEST(RunWire, AProgramKeepsItsEnvironmentAndTerminalSize) {
  const RunStart start{.program = {.argv = {"sh", "-c", "echo \xff"},
                                   .environment = {"TOKEN=a\nb"},
                                   .folder = "/data",
                                   .terminal = true},
                       .inherits = true,
                       .rows = 50,
                       .columns = 132};

  const auto message = there_and_back(start);

  const auto& back = std::get<RunStart>(message);
  EXPECT_EQ(back.program.argv, start.program.argv);
  EXPECT_EQ(back.program.environment, start.program.environment);
  EXPECT_EQ(back.program.folder, "/data");
  EXPECT_TRUE(back.program.terminal);
  EXPECT_TRUE(back.inherits);
  EXPECT_EQ(back.rows, 50);
  EXPECT_EQ(back.columns, 132);
}

TEST(RunWire, ARefusalKeepsItsCodeAndSentences) {
  const auto message = there_and_back(RunRefused{
      {.code = base::ErrorCode::kNotFound, .what = "no such\nprogram", .advice = "name another"}});

  const base::Error& error = std::get<RunRefused>(message).error;
  EXPECT_EQ(error.code, base::ErrorCode::kNotFound);
  EXPECT_EQ(error.what, "no such\nprogram");
  EXPECT_EQ(error.advice, "name another");
}

TEST(RunWire, AnEndKeepsItsSignal) {
  const auto message = there_and_back(RunEnded{{.status = {.signal = 9, .out_of_memory = true}}});

  EXPECT_EQ(std::get<RunEnded>(message).record.status,
            (job::ExitStatus{.signal = 9, .out_of_memory = true}));
}

TEST(RunWire, MessagesSurviveAnyCutOfTheStream) {
  const std::string stream =
      encode_run(RunBegun{}) + encode_run(AttachOutput{.bytes = std::string(kAttachPiece, 'o')}) +
      encode_run(AttachInputEnd{}) + encode_run(AttachSize{.rows = 3, .columns = 4}) +
      encode_run(RunOutputEnd{}) + encode_run(AttachLeftOut{7});
  for (const size_t piece : {size_t{1}, size_t{5}, size_t{4099}, stream.size()}) {
    RunReader reader;
    std::string kinds;
    for (size_t at = 0; at < stream.size(); at += piece) {
      reader.add(std::string_view(stream).substr(at, piece));
      for (const RunMessage& message : messages_in(reader)) kinds += encode_run(message)[0];
    }
    EXPECT_EQ(kinds, "boercl") << "in pieces of " << piece;
    EXPECT_FALSE(reader.is_broken());
  }
}

TEST(RunWire, ReadMessagesAreNotKeptInMemory) {
  const std::string packet = encode_run(AttachOutput{.bytes = std::string(1000, 'o')});
  RunReader reader;
  for (int i = 0; i < 100; ++i) {
    // Each piece is a whole message and is read at once.
    reader.add(packet);
    ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.kept(), 0U);
  }
}

TEST(RunWire, AMalformedMessageBreaksTheStream) {
  const std::vector<std::string> bad{base::encode_frame('\0', ""),
                                     base::encode_frame('z', ""),      // unknown tag
                                     base::encode_frame('b', "b"),     // too many bytes
                                     base::encode_frame('c', "?"),     //
                                     base::encode_frame('n', "{}"),    // lacks its members
                                     base::encode_frame('p', "{}\n"),  //
                                     base::encode_frame('p', "{"),     //
                                     base::encode_frame('q', ""),      //
                                     std::string("b\0\0\0\2", 5),      // too long
                                     std::string("Error: runc: exec failed")};
  for (const std::string& text : bad) {
    RunReader reader;
    reader.add(encode_run(RunBegun{}) + text);

    EXPECT_EQ(messages_in(reader).size(), 1U);
    EXPECT_TRUE(reader.is_broken()) << text;
    reader.add(encode_run(RunBegun{}));
    EXPECT_EQ(reader.next(), std::nullopt);
  }
}

}  // namespace
}  // namespace muster::engine
