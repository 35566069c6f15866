// Whether an answer gives away a word of velvet's (team_server.h).
#pragma once

#include <cctype>
#include <string>

#include "team_server.h"

namespace muster::server {

inline std::string all_of(const http::Response& response) {
  std::string text = response.body + "\n" + response.content_type;
  for (const auto& [name, value] : response.headers) text += "\n" + name + ": " + value;
  return text;
}

inline std::string all_of(const TeamServer::Ask& ask) {
  std::string text = ask.path + "\n" + ask.body;
  for (const auto& [name, value] : ask.query) text += "\n" + value;
  return text;
}

inline std::string lower(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::tolower(letter));
  return text;
}

/// A word of velvet's in the answer that was not in the question.
inline std::string word_given_away(const http::Response& response, const TeamServer::Ask& ask,
                                   const std::string& own_name) {
  const std::string said = lower(all_of(response));
  const std::string asked = lower(all_of(ask)) + own_name;
  for (const std::string& word : kVelvetWords) {
    if (said.find(lower(word)) != std::string::npos && asked.find(lower(word)) == std::string::npos)
      return word;
  }
  return "";
}

}  // namespace muster::server
