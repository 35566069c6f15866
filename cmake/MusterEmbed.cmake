#   muster_embed(TARGET FILE text.json HEADER api/text.h NAMESPACE muster::api FUNCTION text)
#
# Compiles a file into TARGET: HEADER declares `std::string_view FUNCTION();` in NAMESPACE, which returns the
# file's bytes. If the file changes, it is compiled again.
include_guard()

# The build runs this same file as a script to write the source. The length comes from sizeof, because
# the compiler refuses to count more than 262,144 characters.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ ${FILE} text)
  file(WRITE ${OUTPUT} "#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\nstd::string_view ${FUNCTION}() {\n  static constexpr char kText[] = R\"muster_embed(${text})muster_embed\";\n  return {kText, sizeof(kText) - 1};\n}\n\n}  // namespace ${NAMESPACE}\n")
  return()
endif()

set(MUSTER_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(muster_embed target)
  cmake_parse_arguments(ARG "" "FILE;HEADER;NAMESPACE;FUNCTION" "" ${ARGN})
  cmake_path(ABSOLUTE_PATH ARG_FILE OUTPUT_VARIABLE file)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${ARG_FUNCTION}.cc)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DFILE=${file} -DOUTPUT=${output} -DHEADER=${ARG_HEADER}
            -DNAMESPACE=${ARG_NAMESPACE} -DFUNCTION=${ARG_FUNCTION} -P ${MUSTER_EMBED_SCRIPT}
    DEPENDS ${file} ${MUSTER_EMBED_SCRIPT}
    COMMENT "Embedding ${file}"
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
