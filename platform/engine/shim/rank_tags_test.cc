#include "engine/shim/rank_tags.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace muster::engine {
namespace {

using job::LogStream;

/// What each source printed: "-" for no rank, and behind it 'o' or 'e' for the stream.
std::map<std::string, std::string> sources_of(const std::vector<std::string>& pieces,
                                              bool bare = false) {
  std::map<std::string, std::string> printed;
  const auto keep = [&](std::optional<int> rank, LogStream stream, std::string_view bytes) {
    EXPECT_FALSE(bytes.empty());
    const std::string name =
        (rank ? std::to_string(*rank) : "-") + (stream == LogStream::kOutput ? "o" : "e");
    printed[name] += bytes;
  };
  RankTags tags(LogStream::kOutput, bare);
  for (const std::string& piece : pieces) tags.add(piece, keep);
  tags.finish(keep);
  return printed;
}

using Sources = std::map<std::string, std::string>;

// What Open MPI 4.1.4 printed with --tag-output, in its lines and at its end.
constexpr const char* kOpenMpi =
    "[1,0]<stdout>:hi\n[1,0]<stdout>:part[1,0]<stderr>:err\n[1,1]<stdout>:hi\n"
    "[1,1]<stderr>:err\n[1,1]<stdout>:part";
const Sources kOfOpenMpi{{"0o", "hi\npart"}, {"0e", "err\n"}, {"1o", "hi\npart"}, {"1e", "err\n"}};

TEST(RankTags, OfOpenMpiSortTheBytesOfEachRankAndStream) {
  EXPECT_EQ(sources_of({kOpenMpi}), kOfOpenMpi);
}

TEST(RankTags, MayBeCutAnywhere) {
  const std::string text = kOpenMpi;
  for (size_t cut = 1; cut < text.size(); ++cut) {
    EXPECT_EQ(sources_of({text.substr(0, cut), text.substr(cut)}), kOfOpenMpi) << cut;
  }
  std::vector<std::string> letters;
  for (const char letter : text) letters.emplace_back(1, letter);
  EXPECT_EQ(sources_of(letters), kOfOpenMpi);
}

TEST(RankTags, OfOpenMpi5HaveABlankBehindThemThatIsNotTheTexts) {
  EXPECT_EQ(sources_of({"[1,0]<stdout>: a\n[1,0]<stdout>:   b\n"}), (Sources{{"0o", "a\n  b\n"}}));
  EXPECT_EQ(sources_of({"[prterun-n1-4711@1,12]<stderr>: a\n"}), (Sources{{"12e", "a\n"}}));
}

TEST(RankTags, WithoutABlankLeaveTheTextItsIndentation) {
  EXPECT_EQ(sources_of({"[1,0]<stderr>:Traceback\n[1,0]<stderr>:  File \"x\"\n"}),
            (Sources{{"0e", "Traceback\n  File \"x\"\n"}}));
}

TEST(RankTags, OfHorovodrunAreKnown) {
  EXPECT_EQ(sources_of({"[2]<stderr>:RuntimeError\nProcess 2 exit with status code 1.\n"}),
            (Sources{{"2e", "RuntimeError\n"}, {"-o", "Process 2 exit with status code 1.\n"}}));
}

TEST(RankTags, OfMpichAreBelievedOnlyWhereTheyWereAskedFor) {
  // What MPICH 4.0.2 printed with -l.
  const std::string printed = "[0] hi\n[0] part[1] hi\nexecvp failed\n[1] [3] own\n";
  EXPECT_EQ(sources_of({printed}), (Sources{{"-o", printed}}));
  EXPECT_EQ(sources_of({printed}, true),
            (Sources{{"0o", "hi\npart[1] hi\n"}, {"-o", "execvp failed\n"}, {"1o", "[3] own\n"}}));
}

TEST(RankTags, LeaveAllOtherOutputAsItIs) {
  for (const std::string text :
       {"[1,0] loss\n", "[INFO]<stdout>:x\n", "[]<stdout>:x\n", "[1,2", "[1,2]<std",
        "[1]<stdout>:", " [1,0]<stdout>:x\n", "see [1,0]<stdout>:x\n", "[99999999999]<stdout>:x\n",
        "\n\n[\n", "[-1]<stdout>:x\n", "a\nb\nno newline"}) {
    EXPECT_EQ(sources_of({text}), (Sources{{"-o", text}}));
    EXPECT_EQ(sources_of({text.substr(0, 2), text.substr(2)}), (Sources{{"-o", text}})) << text;
  }
}

TEST(RankTags, AreNotWaitedForInALongBracket) {
  std::string seen;
  RankTags tags(LogStream::kOutput, false);
  const std::string text = "[" + std::string(200, '1');

  tags.add(text, [&](std::optional<int>, LogStream, std::string_view bytes) { seen += bytes; });

  EXPECT_EQ(seen, text);
}

}  // namespace
}  // namespace muster::engine
