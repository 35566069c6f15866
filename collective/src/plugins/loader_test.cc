#include "plugins/loader.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace muster::collective {
namespace {

Lookup variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

TEST(Plugins, MpiIsTheMpiThatStartedTheProcess) {
  EXPECT_EQ(*plugin_named("mpi", variables({{"OMPI_COMM_WORLD_SIZE", "2"}})), "openmpi");
  EXPECT_EQ(*plugin_named("mpi", variables({{"PMI_RANK", "0"}})), "mpich");
  EXPECT_EQ(*plugin_named("mpi", variables({{"OMPI_COMM_WORLD_SIZE", "2"},
                                            {"MUSTER_COLLECTIVE_MPI", "mpich"}})),
            "mpich");
  EXPECT_EQ(*plugin_named("nccl", variables({})), "nccl");
}

TEST(Plugins, UnknownNamesAreConfigurationErrors) {
  const std::vector<Result<std::string>> refused = {
      plugin_named("mpi", variables({})),
      plugin_named("mpi", variables({{"MUSTER_COLLECTIVE_MPI", "lam"}})),
      plugin_named("carrier pigeon", variables({})),
  };
  for (const Result<std::string>& name : refused) {
    ASSERT_FALSE(name);
    EXPECT_EQ(name.error().code, ErrorCode::kConfiguration);
  }
}

TEST(Plugins, AreSearchedInTheFoldersOfTheVariableFirst) {
  const std::vector<std::string> files =
      plugin_files("nccl", variables({{"MUSTER_COLLECTIVE_PLUGIN_PATH", "/one::/two"}}));
  ASSERT_GE(files.size(), 4u);
  EXPECT_EQ(files[0], "/one/muster_collective_nccl.so");
  EXPECT_EQ(files[1], "/two/muster_collective_nccl.so");
}

TEST(Plugins, ThatAreNotFoundAreAnErrorWithTheFilesTried) {
  const Result<const MusterPlugin*> plugin = load_module("openmpi", {"/nowhere/a.so", "/b.so"});
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().code, ErrorCode::kConfiguration);
  EXPECT_NE(plugin.error().message.find("/nowhere/a.so, /b.so"), std::string::npos);
}

TEST(Plugins, AFileThatIsNotAModuleIsAnErrorWithTheReason) {
  std::string folder = std::filesystem::temp_directory_path() / "muster-plugin-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/muster_collective_mpich.so";
  std::ofstream(file) << "not a module";
  const Result<const MusterPlugin*> plugin = load_module("mpich", {file});
  std::filesystem::remove_all(folder);
  ASSERT_FALSE(plugin);
  EXPECT_EQ(plugin.error().code, ErrorCode::kConfiguration);
  EXPECT_NE(plugin.error().message.find(file), std::string::npos) << plugin.error().message;
}

// The test sets the name of a library that does not exist, so it works on hosts with NCCL as well.
TEST(Plugins, NcclNamesTheMissingLibrary) {
  ASSERT_EQ(::setenv("MUSTER_COLLECTIVE_PLUGIN_PATH", MUSTER_PLUGIN_FOLDER, 1), 0);
  ASSERT_EQ(::setenv("MUSTER_COLLECTIVE_NCCL", "libnccl-that-is-not-there.so", 1), 0);
  World world;
  world.hosts = {"here"};
  world.options.transport = "nccl";
  const Result<std::unique_ptr<Backend>> backend = load_plugin(world, nullptr);
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code, ErrorCode::kConfiguration);
  EXPECT_NE(backend.error().message.find("no NCCL: "), std::string::npos)
      << backend.error().to_string();
}

}  // namespace
}  // namespace muster::collective
