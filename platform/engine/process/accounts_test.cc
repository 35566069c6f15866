#include "engine/process/accounts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/test_faults.h"
#include "base/test_folder.h"

namespace muster::engine {
namespace {

constexpr const char* kWholeMap = "         0          0 4294967295\n";

AccountFacts root_facts() {
  return {.is_root = true, .uid = 0, .user = "root", .uid_map = kWholeMap, .gid_map = kWholeMap};
}

AccountFacts ordinary_facts() {
  return {.uid = 1000,
          .user = "muster",
          .subuid = "ada:100000:65536\nmuster:165536:65536\n",
          .subgid = "muster:165536:65536\n",
          .uid_map = kWholeMap,
          .newuidmap = "/usr/bin/newuidmap",
          .newgidmap = "/usr/bin/newgidmap"};
}

TEST(LentIds, AreThoseOfTheNameOrTheNumber) {
  const std::string text =
      "ada:100000:65536\n1000:300000:10\nbroken\nada:x:1\nada:200000:0\nada:7:1";
  using Spans = std::vector<IdSpan>;

  EXPECT_EQ(lent_ids(text, "ada", 1), (Spans{{100000, 65536}, {7, 1}}));
  EXPECT_EQ(lent_ids(text, "ben", 1000), (Spans{{300000, 10}}));
  EXPECT_EQ(lent_ids(text, "ben", 1001), Spans{});
}

TEST(IdSpace, IsTheSameAfterItsWayThroughACommandLine) {
  const IdSpace space{.newuidmap = "/usr/bin/newuidmap",
                      .newgidmap = "/usr/bin/newgidmap",
                      .uids = {{100000, 65536}, {7, 1}},
                      .gids = {{100000, 65536}}};

  EXPECT_EQ(*decode_id_space(encode(space)), space);
  for (const char* broken : {"", "a:b:c", "a:b:1+1:x", "a:b:1+:2+2"}) {
    EXPECT_FALSE(decode_id_space(broken)) << broken;
  }
}

// --- sources of ids

TEST(AccountSource, OfRootIsTheSpanOfTheConfiguration) {
  const auto source = source_of(root_facts());

  ASSERT_TRUE(source) << source.error().to_string();
  EXPECT_TRUE(source->is_root);
  EXPECT_EQ(source->uids, std::vector<IdSpan>{kTeamSubids});
  EXPECT_FALSE(source->space);
}

TEST(AccountSource, OfRootReportsAllIdsOfOthersAtOnce) {
  AccountFacts facts = root_facts();
  facts.subids = IdSpan{.first = 100000, .count = 200000};
  facts.subuid = "ada:165536:65536\nben:300000:65536\n";
  facts.subgid = "ada:99999:2\n";
  facts.accounts = {{"daemon", 1}, {"far", 200000}};

  const auto source = source_of(facts);

  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, base::ErrorCode::kInvalid);
  EXPECT_EQ(base::texts_of(source.error().faults),
            (std::vector<std::string>{
                "tasks.subids overlaps the ids that /etc/subuid assigns to 'ada': 165536:65536",
                "tasks.subids overlaps the ids that /etc/subgid assigns to 'ada': 99999:2",
                "tasks.subids holds the id 200000 of 'far'"}));
}

TEST(AccountSource, IsMissingWhereTheServerLacksTheRights) {
  struct Case {
    const char* why;
    void (*change)(AccountFacts&);
    bool is_root = false;
  };
  const std::vector<Case> cases{
      {"newuidmap is not installed", [](AccountFacts& facts) { facts.newuidmap.clear(); }},
      {"newgidmap is not installed", [](AccountFacts& facts) { facts.newgidmap.clear(); }},
      {"/etc/subuid assigns no ids to 'muster'", [](AccountFacts& facts) { facts.subuid.clear(); }},
      {"/etc/subgid assigns no ids to 'muster'", [](AccountFacts& facts) { facts.subgid.clear(); }},
      {"tasks.accounts is shared", [](AccountFacts& facts) { facts.all_share = true; }},
      {"this system lets root use only a part of the ids (/proc/self/uid_map)",
       [](AccountFacts& facts) { facts.uid_map = "0 1000 1\n1 100000 65536\n"; }, true}};
  for (const Case& each : cases) {
    AccountFacts facts = each.is_root ? root_facts() : ordinary_facts();
    each.change(facts);

    const auto source = source_of(facts);

    ASSERT_FALSE(source) << each.why;
    EXPECT_EQ(source.error().what, each.why);
    EXPECT_EQ(source.error().code, base::ErrorCode::kUnavailable) << each.why;
    EXPECT_FALSE(source.error().advice.empty()) << each.why;
  }
}

TEST(AccountSource, OfAnOrdinaryAccountIsItsSubordinateIds) {
  const auto source = source_of(ordinary_facts());

  ASSERT_TRUE(source) << source.error().to_string();
  EXPECT_EQ(source->uids, (std::vector<IdSpan>{{165536, 65536}}));
  EXPECT_EQ(source->count, 1U);
  ASSERT_TRUE(source->space);
  EXPECT_EQ(source->space->gids, source->gids);
}

// --- assigned ids

TEST(IdBook, GivesEachNameIdsOfItsOwnAndKeepsThem) {
  const base::TestFolder folder;
  const std::vector<IdSpan> spans{{100000, 20}, {200000, 10}};

  EXPECT_EQ(*IdBook(folder / "ids").range_of("ada", spans, spans, 10),
            (IdRange{100000, 100000, 10}));
  EXPECT_EQ(*IdBook(folder / "ids").range_of("ben", spans, spans, 10),
            (IdRange{100010, 100010, 10}));
  EXPECT_EQ(*IdBook(folder / "ids").range_of("cyd", spans, spans, 10),
            (IdRange{200000, 200000, 10}));
  EXPECT_EQ(*IdBook(folder / "ids").range_of("ada", spans, spans, 10),
            (IdRange{100000, 100000, 10}));
}

TEST(IdBook, KeepsARangeWhenTheSpansChange) {
  const base::TestFolder folder;
  IdBook book(folder / "ids");
  ASSERT_TRUE(book.range_of("ada", {{100000, 10}}, {{100000, 10}}, 10));

  EXPECT_EQ(*book.range_of("ada", {{500000, 10}}, {{500000, 10}}, 10),
            (IdRange{100000, 100000, 10}));
  EXPECT_EQ(*book.range_of("ben", {{100005, 15}}, {{100005, 15}}, 10),
            (IdRange{100010, 100010, 10}));
}

TEST(IdBook, NamesTheUserForWhomNoIdsAreLeft) {
  const base::TestFolder folder;
  IdBook book(folder / "ids");
  const std::vector<IdSpan> spans{{100000, 25}};
  for (const char* name : {"ada", "ben"}) ASSERT_TRUE(book.range_of(name, spans, spans, 10));

  const auto third = book.range_of("cyd", spans, spans, 10);

  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, base::ErrorCode::kExhausted);
  EXPECT_EQ(third.error().what, "no user ids are left for 'cyd': 2 of 2 ranges are in use");
  EXPECT_TRUE(book.range_of("ada", spans, spans, 10));
}

TEST(IdBook, GivesNothingAwayWhenItsFileIsDamaged) {
  const base::TestFolder folder;
  for (const char* text : {"100000 100000 ada\n", "x 1 1 ada\n", "1 1 0 ada\n"}) {
    ASSERT_TRUE(base::write_file(folder / "ids", text));
    const auto range = IdBook(folder / "ids").range_of("ben", {{1, 9}}, {{1, 9}}, 1);
    ASSERT_FALSE(range) << text;
    EXPECT_EQ(range.error().code, base::ErrorCode::kInternal) << text;
  }
  EXPECT_FALSE(IdBook(folder / "other").range_of("a b", {{1, 9}}, {{1, 9}}, 1));
}

// --- Unix accounts

TEST(AccountFaults, AreAllReportedAtOnce) {
  const auto texts = [](const std::string& account, uint32_t server_uid) {
    return base::texts_of(account_faults(account, server_uid));
  };
  const std::string no_root =
      "account cannot be used: the server does not run as root, so that it cannot run jobs under "
      "other accounts";

  EXPECT_EQ(texts("daemon", 0), std::vector<std::string>{});
  EXPECT_EQ(texts("no-such-account", 0),
            (std::vector<std::string>{
                "account there is no account 'no-such-account' on the server's machine"}));
  EXPECT_EQ(
      texts("root", 1000),
      (std::vector<std::string>{no_root, "account 'root' is root, and jobs may not run as root",
                                "account 'root' is in the group of root"}));
}

TEST(AccountFaults, RefuseTheAccountOfTheServer) {
  const auto daemon = find_unix_account("daemon");
  ASSERT_TRUE(daemon);

  EXPECT_EQ(
      base::texts_of(account_faults("daemon", daemon->uid)),
      (std::vector<std::string>{
          "account 'daemon' is the account of the server, under which no user's jobs may run: "
          "tasks.accounts: shared runs the jobs of all users under it"}));
}

// --- the account of a task

AccountSource source_in(const base::TestFolder& folder) {
  AccountSource source = *source_of(root_facts());
  source.book = folder / "ids";
  return source;
}

TEST(AssignAccount, MapsTheRangeOfTheOwner) {
  const base::TestFolder folder;
  launch::TaskPlan plan;
  plan.owner = "ada";

  const auto assigned = assign_account(source_in(folder), plan, 0, 0);

  ASSERT_TRUE(assigned) << assigned.error().to_string();
  const uint32_t first = kTeamSubids.first + kIdsOfUser;
  EXPECT_EQ(assigned->storage_gid, kTeamSubids.first);
  EXPECT_EQ(assigned->account.uid, first);
  EXPECT_EQ(assigned->account.uids, (std::vector<IdMapping>{{0, first, kIdsOfUser}}));
  EXPECT_EQ(
      assigned->account.gids,
      (std::vector<IdMapping>{{0, first, kIdsOfUser}, {kTeamSubids.first, kTeamSubids.first, 1}}));
}

TEST(AssignAccount, UsesTheNamedUnixAccount) {
  const base::TestFolder folder;
  launch::TaskPlan plan;
  plan.owner = "ada";
  plan.unix_account = "daemon";

  const auto assigned = assign_account(source_in(folder), plan, 0, 0);

  ASSERT_TRUE(assigned) << assigned.error().to_string();
  EXPECT_NE(assigned->account.uid, 0U);
  EXPECT_EQ(assigned->account.inside_uid, assigned->account.uid);
  EXPECT_TRUE(assigned->is_unix_account);

  plan.unix_account = "no-such-account";
  EXPECT_EQ(assign_account(source_in(folder), plan, 0, 0).error().code, base::ErrorCode::kNotFound);
}

TEST(AssignAccount, CountsTheProcessesOfAUnixAccountApartWhereThatIsPossible) {
  const base::TestFolder folder;
  launch::TaskPlan plan;
  plan.owner = "ada";
  plan.unix_account = "daemon";
  const auto uids_by = [&](void (*changed)(AccountFacts&)) {
    AccountFacts facts = root_facts();
    changed(facts);
    AccountSource source = *source_of(facts);
    source.book = folder / "ids";
    const auto assigned = assign_account(source, plan, 0, 0);
    EXPECT_EQ(assigned->account.uids, assigned->account.gids);
    return assigned->account.uids;
  };

  EXPECT_EQ(uids_by([](AccountFacts&) {}), (std::vector<IdMapping>{{0, 0, 4'294'967'295}}))
      << "all ids are as outside";
  EXPECT_EQ(uids_by([](AccountFacts& facts) { facts.has_user_namespaces = false; }),
            std::vector<IdMapping>());
  EXPECT_EQ(uids_by([](AccountFacts& facts) { facts.gid_map = "0 0 2000000000\n"; }),
            std::vector<IdMapping>())
      << "a container that maps a part of the ids";
}

TEST(AssignAccount, GivesAProjectIdsWhereHomesAreOfProjects) {
  const base::TestFolder folder;
  AccountSource source = source_in(folder);
  source.are_of_projects = true;
  launch::TaskPlan plan;
  plan.project = "lab";
  plan.owner = "ada";
  const auto first = assign_account(source, plan, 0, 0);
  plan.owner = "ben";
  const auto second = assign_account(source, plan, 0, 0);

  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->account, second->account);
}

}  // namespace
}  // namespace muster::engine
