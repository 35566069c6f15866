#include "job/notification.h"

#include <gtest/gtest.h>

namespace muster::job {
namespace {

TEST(Happening, HasANameThatReadsBack) {
  for (const Happening happening : all_happenings()) {
    EXPECT_EQ(happening_of(to_string(happening)), happening);
  }
}

TEST(Happening, PingCannotBeSubscribedTo) {
  EXPECT_EQ(happening_of("ping"), std::nullopt);
  EXPECT_EQ(happening_of("evicted"), std::nullopt);
}

TEST(NotificationPattern, StarMatchesAnyCharactersAndQuestionMarkMatchesOne) {
  const struct {
    const char* pattern;
    const char* name;
    bool matches;
  } cases[] = {
      {"", "", true},
      {"", "a", false},
      {"*", "", true},
      {"*", "train-7", true},
      {"train-*", "train-7", true},
      {"train-*", "train-", true},
      {"train-*", "drain-7", false},
      {"*-7", "train-7", true},
      {"*-7", "train-77", false},
      {"t?ain", "train", true},
      {"t?ain", "tain", false},
      {"*a*b*", "xxaxxbxx", true},
      {"*a*b", "ab-ab", true},
      {"a**b", "ab", true},
      {"a*b", "acbd", false},
      {"train", "train-7", false},
      {"?", "", false},
      {"[a-z]", "a", false},
  };
  for (const auto& [pattern, name, matches] : cases) {
    EXPECT_EQ(matches_pattern(pattern, name), matches) << pattern << " on " << name;
  }
}

TEST(NotificationPattern, TakesNoLongerWithManyStars) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  EXPECT_FALSE(matches_pattern(pattern + "b", std::string(5'000, 'a')));
}

TEST(Origin, OmitsThePath) {
  EXPECT_EQ(origin_of("https://hooks.example.com:8443/services/T0/secret?token=x"),
            "https://hooks.example.com:8443");
  EXPECT_EQ(origin_of("https://hooks.example.com"), "https://hooks.example.com");
  EXPECT_EQ(origin_of("https://hooks.example.com?token=x"), "https://hooks.example.com");
  EXPECT_EQ(origin_of("nothing"), "");
}

}  // namespace
}  // namespace muster::job
