// Which server may use the state folder of another.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "base/test_folder.h"
#include "config/server_config.h"

namespace muster::cli::server {

namespace {

TEST(ServerOrigin, KeepsOutServersThatAreStartedWithLess) {
  using config::ServerOrigin;
  const ServerOrigin plain;
  const ServerOrigin named{.config = "/etc/muster.yaml"};
  const ServerOrigin other{.config = "/etc/other.yaml"};
  const ServerOrigin team{.listens = true};
  const ServerOrigin both{.listens = true, .on_postgres = true};
  struct Case {
    const ServerOrigin& recorded;
    const ServerOrigin& own;
    bool is_accepted;
  };
  const Case cases[] = {{plain, plain, true}, {plain, both, true},  {named, plain, false},
                        {named, team, false}, {named, other, true}, {team, plain, false},
                        {team, team, true},   {team, other, false}, {both, team, false},
                        {team, both, true},   {both, both, true}};
  for (const Case& each : cases) {
    const auto checked = config::check_origin("/state", each.recorded, each.own);
    EXPECT_EQ(checked.ok(), each.is_accepted) << &each - cases;
    if (checked) continue;
    EXPECT_EQ(checked.error().code, base::ErrorCode::kConflict);
    EXPECT_NE(base::detail_of<config::StartedOtherwise>(checked.error()), nullptr);
  }
}

TEST(ServerOrigin, TheUsualFileCountsAsGivenWhereItWasGivenBefore) {
  const config::ServerOrigin recorded{.config = "/home/ada/server.yaml"};
  config::ServeOptions options{.config = {.file = "/home/ada/server.yaml"}};
  const auto is_accepted = [&] {
    const config::ServerOrigin own = config::origin_there(options, false, recorded);
    return config::check_origin("/state", recorded, own).ok();
  };
  EXPECT_FALSE(is_accepted()) << "the file is gone";

  options.config.written.emplace();
  EXPECT_TRUE(is_accepted());
  options.config.file = "/home/ben/server.yaml";
  EXPECT_FALSE(is_accepted());
}

TEST(ServerOrigin, IsNamedWithTheCommandThatStartsTheServer) {
  const auto advice = [](const config::ServerOrigin& recorded) {
    const auto refused = config::check_origin("/state", recorded, {});
    return refused.error().what + "|" + refused.error().advice;
  };
  const std::string otherwise =
      "; if another server is to have the folder: muster server --take-over";
  EXPECT_EQ(advice({.config = "/a.yaml"}),
            "the server of '/state' is started with --config /a.yaml|start it: muster server "
            "--config /a.yaml" +
                otherwise);
  EXPECT_EQ(advice({.config = "/a.yaml", .listens = true, .is_service = true}),
            "the server of '/state' is started with --config /a.yaml|start its service, as with: "
            "systemctl start muster (it runs: muster server --config /a.yaml)" +
                otherwise);
  EXPECT_EQ(advice({.listens = true, .on_postgres = true}),
            "the server of '/state' listens for a team and has its database in PostgreSQL|start it "
            "with the settings that it had, such as: muster server --listen HOST:PORT" +
                otherwise);
}

TEST(ServerOrigin, IsReadBackAndADamagedFileKeepsPrivateServersOut) {
  const base::TestFolder folder;
  const std::filesystem::path file = folder / "server.origin";
  EXPECT_EQ(config::recorded_origin(file), config::ServerOrigin());

  const config::ServerOrigin origin{.config = "/a.yaml", .listens = true, .is_service = true};
  ASSERT_TRUE(config::note_origin(file, origin));
  EXPECT_EQ(config::recorded_origin(file), origin);

  ASSERT_TRUE(base::write_file(file, "{"));
  EXPECT_FALSE(config::check_origin("/state", config::recorded_origin(file), {}));

  ASSERT_TRUE(config::note_origin(file, {}));
  EXPECT_FALSE(std::filesystem::exists(file));
  ASSERT_TRUE(config::note_origin(file, {})) << "there is none";
}

}  // namespace

}  // namespace muster::cli::server
