//! Scripts and style sheets without comments, for the build scripts of pages.

/// Removes the comment lines of a script or a style sheet, which readers of the page don't need.
///
/// # Errors
///
/// Returns an error for a line that only looks like a comment.
pub fn without_comments(script: &str) -> Result<String, String> {
    let (mut kept, mut is_in_comment) = (String::new(), false);
    for line in script.split_inclusive('\n') {
        let text = line.trim();
        is_in_comment |= text.starts_with("/*");
        if text.starts_with('*') && !is_in_comment {
            return Err(format!("a line that starts with * looks like a comment: {text}"));
        }
        if !is_in_comment && !text.starts_with("//") {
            kept += line;
        }
        if is_in_comment && text.contains("*/") {
            if !text.ends_with("*/") {
                return Err(format!("nothing may follow */ on its line: {text}"));
            }
            is_in_comment = false;
        }
    }
    Ok(kept)
}
