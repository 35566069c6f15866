// The documentation has every key of a job file, and every field of a spec of the API.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "job/spec_table.h"

namespace muster::cli::spec {

namespace {

using KeyNames = std::set<std::string>;

std::string documentation_page(const std::string& name) {
  const auto page = base::read_file(std::filesystem::path(MUSTER_SOURCE) / "docs" / name);
  EXPECT_TRUE(page) << name;
  return page ? *page : "";
}

/// The parts of a line between backticks.
std::string code_in_line(std::string_view line) {
  std::string code;
  bool is_code = false;
  for (const char c : line) {
    if (c == '`') is_code = !is_code;
    code += is_code && c != '`' ? c : ' ';
  }
  return code;
}

void add_words(std::string_view code, KeyNames& words) {
  std::string word;
  for (const char c : std::string(code) + ' ') {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
    } else if (!word.empty()) {
      words.insert(std::exchange(word, {}));
    }
  }
}

/// The words of all blocks and pieces of code of a page.
KeyNames words_in_code(const std::string& page) {
  KeyNames words;
  std::istringstream lines(page);
  bool is_block = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) is_block = !is_block;
    add_words(is_block || line.starts_with("    ") ? line : code_in_line(line), words);
  }
  return words;
}

/// The words of code in the first column of the first table behind `sentence`.
KeyNames first_column_behind(const std::string& page, std::string_view sentence) {
  const size_t begin = page.find(sentence);
  EXPECT_NE(begin, std::string::npos) << sentence;
  if (begin == std::string::npos) return {};
  KeyNames words;
  std::istringstream lines(page.substr(begin));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| `")) {
      add_words(code_in_line(line.substr(0, line.find(" |"))), words);
    } else if (!words.empty()) {
      break;
    }
  }
  return words;
}

KeyNames names_of(const record::Table& table, record::Form form) {
  const std::vector<std::string> names = table.names(form);
  return {names.begin(), names.end()};
}

TEST(KeysOfAJobFile, AreTheRowsOfTheTablesInTheDocumentation) {
  const std::string page = documentation_page("jobs.md");
  const auto names = [](const record::Table& table) {
    return names_of(table, record::Form::kHuman);
  };

  KeyNames keys = names(record::table_for<job::JobSpec>());
  keys.insert("workspace");  // the command sends it and replaces it by a volume
  EXPECT_EQ(first_column_behind(page, "## The job file"), keys);
  EXPECT_EQ(first_column_behind(page, "The keys of `scheduling`"),
            names(record::table_for<job::Scheduling>()));
  EXPECT_EQ(first_column_behind(page, "The keys of `slurm`"),
            names(record::table_for<job::SlurmSpec>()));
  EXPECT_EQ(first_column_behind(page, "The keys of `kubernetes`"),
            names(record::table_for<job::KubernetesSpec>()));
}

TEST(KeysOfAJobFile, OfOtherPartsOfASpecAreInTheDocumentation) {
  const KeyNames words = words_in_code(documentation_page("jobs.md"));

  for (const record::Table* table :
       {&record::table_for<job::Resources>(), &record::table_for<job::RoleSpec>(),
        &record::table_for<job::RegistryLogin>(), &record::table_for<job::ContainerSpec>(),
        &record::table_for<job::RetryRule>(), &record::table_for<job::ArraySpec>(),
        &record::table_for<job::Dependency>(), &record::table_for<job::SecretUse>(),
        &record::table_for<job::Volume>()}) {
    for (const std::string& name : table->names(record::Form::kHuman)) {
      EXPECT_TRUE(words.contains(name)) << "docs/jobs.md lacks " << table->name() << "." << name;
    }
  }
}

TEST(FieldsOfASpec, AreInTheDocumentationOfTheApi) {
  const KeyNames words = words_in_code(documentation_page("api.md"));

  for (const std::string& name : record::table_for<job::JobSpec>().names(record::Form::kWire)) {
    EXPECT_TRUE(words.contains(name)) << "docs/api.md lacks " << name;
  }
}

}  // namespace

}  // namespace muster::cli::spec
