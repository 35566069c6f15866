// Requests each route as each kind of caller. route_rows.cc has the status that each caller must
// receive. A caller without a role in the project of the request must find no name of the project in
// an answer, and must receive the same answer as for a project that does not exist.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "given_away.h"
#include "route_rows.h"
#include "velvet_team.h"
#include "words/sentence.h"

namespace muster::server {
namespace {

const std::vector<std::string> kNotLetIn{"nobody",  "no token", "forged",
                                         "expired", "revoked",  "disabled"};
const std::vector<std::string> kStrangers{"stranger", "elsewhere"};
const std::vector<std::string> kLetIn{"invited", "viewer",        "reading",     "member",
                                      "admin",   "server viewer", "server admin"};

/// The name of the caller, which an answer may contain.
std::string own_name_of(const std::string& caller) {
  return caller == "elsewhere" ? "jasper" : "";
}

/// Replaces velvet's names by names of equal length that do not exist.
std::string of_ghosts(std::string text) {
  for (const auto& [word, ghost] :
       std::vector<std::pair<std::string, std::string>>{{"velvet", "xxxxxx"},
                                                        {"quicksilver", "xxxxxxxxxxx"},
                                                        {"obsidian", "xxxxxxxx"},
                                                        {"garnet", "xxxxxx"},
                                                        {"malachite", "xxxxxxxxx"},
                                                        {"peridot", "xxxxxxx"},
                                                        {"amethyst", "xxxxxxxx"},
                                                        {"hyacinth", "xxxxxxxx"},
                                                        {"amber", "xxxxx"},
                                                        {"beryl", "xxxxx"},
                                                        {"MOONSTONE", "XXXXXXXXX"}}) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word)) {
      text.replace(at, word.size(), ghost);
    }
  }
  return text;
}

TeamServer::Ask of_ghosts(TeamServer::Ask ask) {
  ask.path = of_ghosts(ask.path);
  ask.body = of_ghosts(ask.body);
  for (auto& [name, value] : ask.query) value = of_ghosts(value);
  return ask;
}

TEST(WrongUser, TheTableHasARowForEachRouteAndNoneForOthers) {
  const Team team;
  std::set<std::string> routes;
  for (const auto& route : team.app().router().routes()) {
    routes.insert(route.method + " " + route.path);
  }
  std::set<std::string> in_table;
  for (const Row& row : rows()) in_table.insert(row.route);

  EXPECT_EQ(in_table, routes);
}

TEST(WrongUser, AnUnfilteredExplanationNamesTheJobOfVelvetThatDisplacedTheJobOfGreen) {
  Team team;
  const auto words = [&](const std::string& name) {
    const auto explanation = team.controller().explain(name);
    std::string text = words::sentence(explanation->reason);
    for (const std::string& detail : words::details(explanation->reason)) text += "\n" + detail;
    for (const job::Event& event : explanation->events) text += "\n" + words::sentence(event.what);
    return text;
  };

  EXPECT_NE(words("green-big").find("quicksilver"), std::string::npos) << words("green-big");
  EXPECT_EQ((*team.controller().jobs().find("quicksilver"))->phase, job::Phase::kRunning);
  EXPECT_EQ((*team.controller().jobs().find("green-small"))->phase, job::Phase::kRunning);
}

TEST(WrongUser, ACallerWithoutAValidTokenIsRefused) {
  for (const Row& row : rows()) {
    Team team;
    for (const std::string& caller : kNotLetIn) {
      const http::Response answer = ask_as(team, row, caller);
      EXPECT_EQ(answer.status, expected(row, caller)) << title(row, caller) << "\n" << answer.body;
      EXPECT_EQ(leaked_word(answer, row.ask, caller == "disabled" ? "disabled-amber" : ""), "")
          << title(row, caller) << "\n"
          << answer.body;
      if (answer.status == 401) {
        EXPECT_TRUE(answer.headers.at("www-authenticate").starts_with("Bearer"));
      }
    }
  }
}

TEST(WrongUser, AStrangerSeesNothingOfAProject) {
  for (const Row& row : rows()) {
    for (const std::string& caller : kStrangers) {
      Team team;
      const http::Response answer = ask_as(team, row, caller);
      EXPECT_EQ(answer.status, expected(row, caller)) << title(row, caller) << "\n" << answer.body;
      EXPECT_EQ(leaked_word(answer, row.ask, own_name_of(caller)), "") << title(row, caller) << "\n"
                                                                       << all_of(answer);
    }
  }
}

TEST(WrongUser, AStrangerReceivesTheSameAnswerAsForAProjectThatDoesNotExist) {
  for (const Row& row : rows()) {
    if (row.stranger != 404) continue;
    for (const std::string& caller : kStrangers) {
      Team team;
      const http::Response answer = ask_as(team, row, caller);
      Row ghost = row;
      ghost.ask = of_ghosts(row.ask);
      const http::Response nothing = ask_as(team, ghost, caller);

      EXPECT_EQ(nothing.status, 404) << title(ghost, caller);
      EXPECT_EQ(of_ghosts(answer.body), nothing.body) << title(row, caller);
      EXPECT_EQ(answer.headers, nothing.headers) << title(row, caller);
    }
  }
}

TEST(WrongUser, EachRoleReceivesTheStatusOfTheTable) {
  for (const Row& row : rows()) {
    for (const std::string& caller : kLetIn) {
      Team team;
      const http::Response answer = ask_as(team, row, caller);
      EXPECT_EQ(answer.status, expected(row, caller)) << title(row, caller) << "\n" << answer.body;
    }
  }
}

TEST(WrongUser, ACallerWithOnlyTheRightToReadChangesNothing) {
  const std::set<std::string> own{"POST /v1/login", "POST /v1/logout", "POST /v1/tokens",
                                  "POST /v1/ui/codes"};
  for (const Row& row : rows()) {
    const bool reads =
        row.ask.method == "GET" && !row.route.ends_with("/exec") && !row.route.ends_with("/attach");
    if (reads || own.contains(row.route)) continue;
    for (const std::string caller :
         {"stranger", "elsewhere", "viewer", "reading", "server viewer"}) {
      Team team;
      const size_t before = team.accounts().audit({.limit = 1000})->size();
      ask_as(team, row, caller);
      EXPECT_EQ(team.accounts().audit({.limit = 1000})->size(), before) << title(row, caller);
    }
  }
}

}  // namespace
}  // namespace muster::server
