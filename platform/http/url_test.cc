#include "http/url.h"

#include <gtest/gtest.h>

#include "http/message.h"

namespace muster::http {
namespace {

TEST(UrlEncoded, LeavesOnlyUnreservedCharactersAsTheyAre) {
  EXPECT_EQ(url_encoded("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(url_encoded("a b/c+d&e=f%"), "a%20b%2Fc%2Bd%26e%3Df%25");
  EXPECT_EQ(url_encoded(std::string_view("\0\xFF", 2)), "%00%FF");
}

TEST(ParseTarget, DecodesThePathAndEachParameter) {
  const auto target = parse_target("/v1/jobs/a%20b?task=worker-0&since=2026-01-31T00%3A00%3A00Z");

  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/v1/jobs/a b");
  EXPECT_EQ(target->query, (std::map<std::string, std::string>{{"task", "worker-0"},
                                                               {"since", "2026-01-31T00:00:00Z"}}));
}

TEST(ParseTarget, TakesAPlusForASpaceInTheQueryOnly) {
  const auto target = parse_target("/a+b?x=c+d%2B");

  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/a+b");
  EXPECT_EQ(target->query.at("x"), "c d+");
}

TEST(ParseTarget, TakesQueriesOfEveryShape) {
  EXPECT_EQ(parse_target("/")->query, Query{});
  EXPECT_EQ(parse_target("/?")->query, Query{});
  EXPECT_EQ(parse_target("/?follow")->query, (Query{{"follow", ""}}));
  EXPECT_EQ(parse_target("/?a=1&&b=")->query, (Query{{"a", "1"}, {"b", ""}}));
  EXPECT_EQ(parse_target("/?a=b=c?d")->query, (Query{{"a", "b=c?d"}}));
}

TEST(ParseTarget, TakesTheAbsoluteFormOfProxies) {
  EXPECT_EQ(parse_target("http://host/v1/info?x=1")->path, "/v1/info");
  EXPECT_EQ(parse_target("http://host")->path, "/");
  EXPECT_EQ(parse_target("/redirect?to=http://host/x")->path, "/redirect");
}

TEST(ParseTarget, RefusesInvalidTargets) {
  for (const char* text : {"", "*", "v1/jobs", "/%", "/%2", "/%zz", "/a?x=%", "/a?%g0=1"}) {
    EXPECT_FALSE(parse_target(text)) << text;
  }
}

TEST(ParseTarget, RefusesAmbiguousPaths) {
  for (const char* text :
       {"/v1/jobs/a%2Fstop", "/v1/jobs/a%2fstop", "/v1/jobs/..", "/v1/../v1/jobs", "/v1/./jobs",
        "/%2e%2e/jobs", "/v1/jobs/%2E", "/v1/jobs/a%00", "/v1/jobs/a%0Ab", "/v1/jobs/%7f",
        "/../../etc/passwd", "/v1/jobs?name=a%00b", "/v1/jobs?%00=a"}) {
    EXPECT_FALSE(parse_target(text)) << text;
  }
}

TEST(ParseTarget, LeavesDotsThatClimbNowhere) {
  EXPECT_EQ(parse_target("/v1/jobs/a..b/.../.c")->path, "/v1/jobs/a..b/.../.c");
  EXPECT_EQ(parse_target("/v1/exec?command=%5B%22a%2F..%0A%22%5D")->query.at("command"),
            "[\"a/..\n\"]");
}

TEST(ParseTarget, KeepsEachValueOfANameThatRepeatsAndTheLastCounts) {
  Query query = parse_target("/?a=1&b=x&a=2")->query;

  EXPECT_EQ(query, (Query{{"a", "1"}, {"a", "2"}, {"b", "x"}}));
  EXPECT_EQ(query.at("a"), "2");
  EXPECT_EQ(query.find("a")->second, "2");
  EXPECT_EQ(query.find("c"), query.end());
  query["a"] = "3";
  query["c"] = "new";
  EXPECT_EQ(format_target("/", query), "/?a=1&a=3&b=x&c=new");
}

TEST(Query, MergesOnlyParametersThatItDoesNotHave) {
  Query query{{"a", "1"}};

  query.merge({{"a", "2"}, {"b", "3"}, {"b", "4"}});

  EXPECT_EQ(query, (Query{{"a", "1"}, {"b", "3"}, {"b", "4"}}));
}

TEST(FormatTarget, IsReadBackAsItWas) {
  const Target target{.path = "/v1/jobs/a b?#%+\xFF",
                      .query = {{"a&b", "c=d e+f"}, {"", "no name"}, {"none", ""}}};

  EXPECT_EQ(parse_target(format_target(target.path, target.query)), target);
}

}  // namespace
}  // namespace muster::http
