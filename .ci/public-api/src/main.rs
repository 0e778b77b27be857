//! Compares the public API of each crate with the outline in its `tests/public_api.txt`, so that no change of it goes unnoticed;
//! `--write` writes the outlines (`make public-api`).
//!
//! An outline has the public items of every module without documentation, bodies and private parts. It is made from the sources,
//! since no stable compiler prints the API: `pub` means public because the crates deny `unreachable_pub`.

use std::collections::HashSet;
use std::path::Path;
use std::process::ExitCode;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Attribute, Fields, ImplItem, Item, ItemImpl, ItemMacro, Meta, TraitItem, UseTree, Visibility};

const CRATES: [&str; 3] = ["format", "orc", "table"];

/// What must be known of a whole crate to outline one of its modules.
#[derive(Default)]
struct Names {
    /// Public types.
    types: HashSet<String>,
    /// Private traits.
    private_traits: HashSet<String>,
    /// Macros that make public items.
    macros: HashSet<String>,
    /// Macros that are given one of those to call.
    callers: HashSet<String>,
}

/// The items of a file with the files of its modules in their places.
fn load(file: &Path, folder: &Path) -> Vec<Item> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let with_content = |item| match item {
        Item::Mod(mut module) if module.content.is_none() && !is_hidden(&module.attrs) => {
            let name = module.ident.to_string();
            let beside = folder.join(format!("{name}.rs"));
            let file = if beside.is_file() { beside } else { folder.join(&name).join("mod.rs") };
            module.content = Some((syn::token::Brace::default(), load(&file, &folder.join(&name))));
            Item::Mod(module)
        }
        item => item,
    };
    parsed.items.into_iter().map(with_content).collect()
}

/// Whether an item is for tests alone or left out of the documentation.
fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => list.tokens.to_string() == "test",
        Meta::List(list) if list.path.is_ident("doc") => list.tokens.to_string() == "hidden",
        _ => false,
    })
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn has_word(tokens: impl ToTokens, word: impl Fn(&str) -> bool) -> bool {
    let text = tokens.to_token_stream().to_string();
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(word)
}

/// Whether a macro makes public items: it has a `pub` without a restriction.
fn makes_public(tokens: &TokenStream) -> bool {
    let mut tokens = tokens.clone().into_iter().peekable();
    while let Some(token) = tokens.next() {
        let found = match token {
            TokenTree::Group(group) => makes_public(&group.stream()),
            TokenTree::Ident(word) if word == "pub" => {
                !matches!(tokens.peek(), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis)
            }
            _ => false,
        };
        if found {
            return true;
        }
    }
    false
}

/// The tokens without documentation.
fn undocumented(tokens: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    for token in tokens {
        match (kept.last(), token) {
            (Some(TokenTree::Punct(hash)), TokenTree::Group(group))
                if hash.as_char() == '#' && group.stream().to_string().starts_with("doc") =>
            {
                kept.pop();
            }
            (_, TokenTree::Group(group)) => {
                kept.push(Group::new(group.delimiter(), undocumented(group.stream())).into());
            }
            (_, token) => kept.push(token),
        }
    }
    kept.into_iter().collect()
}

fn called(item: &ItemMacro) -> String {
    item.mac.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default()
}

impl Names {
    fn collect(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Mod(module) => self.collect(module.content.as_ref().map_or(&[], |(_, items)| items)),
                Item::Struct(item) if is_public(&item.vis) => drop(self.types.insert(item.ident.to_string())),
                Item::Enum(item) if is_public(&item.vis) => drop(self.types.insert(item.ident.to_string())),
                Item::Type(item) if is_public(&item.vis) => drop(self.types.insert(item.ident.to_string())),
                Item::Trait(item) if !is_public(&item.vis) => {
                    self.private_traits.insert(item.ident.to_string());
                }
                Item::Macro(ItemMacro { ident: Some(name), mac, .. }) if makes_public(&mac.tokens) => {
                    self.macros.insert(name.to_string());
                }
                _ => {}
            }
        }
    }

    fn collect_callers(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Mod(module) => self.collect_callers(module.content.as_ref().map_or(&[], |(_, items)| items)),
                Item::Macro(item) if item.ident.is_none() && self.is_passed(item) => {
                    self.callers.insert(called(item));
                }
                _ => {}
            }
        }
    }

    /// Whether a macro that makes public items is an argument.
    fn is_passed(&self, item: &ItemMacro) -> bool {
        has_word(&item.mac.tokens, |word| self.macros.contains(word))
    }

    fn outline(&self, items: Vec<Item>) -> Vec<Item> {
        let mut kept: Vec<_> = items.into_iter().filter_map(|item| self.outline_item(item)).collect();
        // The order of the sources is no part of the API.
        kept.sort_by_cached_key(|item| (rank(item), item.to_token_stream().to_string()));
        kept
    }

    fn outline_item(&self, mut item: Item) -> Option<Item> {
        if attributes(&mut item).is_some_and(|attributes| is_hidden(attributes)) {
            return None;
        }
        let kept = match &mut item {
            Item::Mod(module) => {
                let (brace, inner) = module.content.take()?;
                let inner = self.outline(inner);
                let is_empty = inner.is_empty();
                module.content = Some((brace, inner));
                !is_empty
            }
            Item::Use(item) => {
                sort_names(&mut item.tree);
                is_public(&item.vis)
            }
            Item::Const(item) => {
                *item.expr = syn::parse_quote!(_);
                is_public(&item.vis)
            }
            Item::Fn(item) => {
                item.block.stmts.clear();
                is_public(&item.vis)
            }
            Item::Type(item) => is_public(&item.vis),
            Item::Struct(item) => {
                keep_public(&mut item.fields);
                is_public(&item.vis)
            }
            Item::Enum(item) => {
                item.variants.iter_mut().for_each(|variant| {
                    variant.attrs.clear();
                    variant.fields.iter_mut().for_each(|field| field.attrs.clear());
                });
                is_public(&item.vis)
            }
            Item::Trait(item) => {
                item.items.iter_mut().for_each(outline_of_trait);
                is_public(&item.vis)
            }
            Item::Impl(item) => self.outline_impl(item),
            Item::Macro(item) => {
                item.mac.tokens = undocumented(std::mem::take(&mut item.mac.tokens));
                match &item.ident {
                    Some(name) => self.callers.contains(&name.to_string()),
                    None => self.macros.contains(&called(item)) || self.is_passed(item),
                }
            }
            _ => false,
        };
        attributes(&mut item).into_iter().for_each(|attributes| attributes.retain(is_of_interface));
        kept.then_some(item)
    }

    /// Whether an implementation is public; what is private is taken out of it.
    fn outline_impl(&self, item: &mut ItemImpl) -> bool {
        let is_public_type = has_word(&item.self_ty, |word| self.types.contains(word));
        if let Some((.., path, _)) = &item.trait_ {
            let name = path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
            item.items.retain(|inner| matches!(inner, ImplItem::Type(_)));
            return is_public_type && !self.private_traits.contains(&name);
        }
        item.items.retain(|inner| match inner {
            ImplItem::Fn(inner) => is_public(&inner.vis),
            ImplItem::Const(inner) => is_public(&inner.vis),
            _ => false,
        });
        for inner in &mut item.items {
            match inner {
                ImplItem::Fn(inner) => {
                    inner.attrs.retain(is_of_interface);
                    inner.block.stmts.clear();
                }
                ImplItem::Const(inner) => {
                    inner.attrs.clear();
                    inner.expr = syn::parse_quote!(_);
                }
                _ => {}
            }
        }
        item.items.sort_by_cached_key(|inner| inner.to_token_stream().to_string());
        is_public_type && !item.items.is_empty()
    }
}

fn outline_of_trait(item: &mut TraitItem) {
    match item {
        TraitItem::Fn(item) => {
            item.attrs.clear();
            item.default.iter_mut().for_each(|block| block.stmts.clear());
        }
        TraitItem::Const(item) => item.attrs.clear(),
        TraitItem::Type(item) => item.attrs.clear(),
        _ => {}
    }
}

fn is_of_interface(attribute: &Attribute) -> bool {
    ["derive", "non_exhaustive", "must_use", "cfg"].iter().any(|name| attribute.path().is_ident(name))
}

fn attributes(item: &mut Item) -> Option<&mut Vec<Attribute>> {
    Some(match item {
        Item::Const(item) => &mut item.attrs,
        Item::Enum(item) => &mut item.attrs,
        Item::Fn(item) => &mut item.attrs,
        Item::Impl(item) => &mut item.attrs,
        Item::Macro(item) => &mut item.attrs,
        Item::Mod(item) => &mut item.attrs,
        Item::Struct(item) => &mut item.attrs,
        Item::Trait(item) => &mut item.attrs,
        Item::Type(item) => &mut item.attrs,
        Item::Use(item) => &mut item.attrs,
        _ => return None,
    })
}

fn keep_public(fields: &mut Fields) {
    let named = match fields {
        Fields::Named(fields) => &mut fields.named,
        Fields::Unnamed(fields) => &mut fields.unnamed,
        Fields::Unit => return,
    };
    let kept = std::mem::take(named).into_iter().filter(|field| is_public(&field.vis));
    *named = kept.map(|field| syn::Field { attrs: Vec::new(), ..field }).collect();
}

fn sort_names(tree: &mut UseTree) {
    match tree {
        UseTree::Path(path) => sort_names(&mut path.tree),
        UseTree::Group(group) => {
            let mut names: Vec<_> = std::mem::take(&mut group.items).into_iter().collect();
            names.sort_by_cached_key(|name| name.to_token_stream().to_string());
            group.items = names.into_iter().collect::<Punctuated<_, _>>();
        }
        _ => {}
    }
}

/// Names first, modules last.
fn rank(item: &Item) -> u8 {
    match item {
        Item::Use(_) => 0,
        Item::Mod(_) => 2,
        _ => 1,
    }
}

fn outline(items: Vec<Item>) -> String {
    let mut names = Names::default();
    names.collect(&items);
    names.collect_callers(&items);
    prettyplease::unparse(&syn::File {
        shebang: None,
        frontmatter: None,
        attrs: Vec::new(),
        items: names.outline(items),
    })
}

/// What the stored outline lacks and what it has beyond the one of the sources; nothing if they are the same.
fn changes(stored: &str, made: &str) -> Option<String> {
    let (before, now): (Vec<_>, Vec<_>) = (stored.lines().collect(), made.lines().collect());
    let lost = before.iter().filter(|line| !now.contains(line)).map(|line| format!("- {line}\n"));
    let new = now.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}\n"));
    (stored != made).then(|| lost.chain(new).collect())
}

fn main() -> ExitCode {
    let write = std::env::args().any(|argument| argument == "--write");
    // Of the checkout that it runs in: another one may have compiled it, where they share a target folder.
    let root = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    let crates = Path::new(&root).join("../../crates");
    let mut code = ExitCode::SUCCESS;
    for name in CRATES {
        let source = crates.join(name).join("src");
        let made = outline(load(&source.join("lib.rs"), &source));
        let file = crates.join(name).join("tests/public_api.txt");
        let stored = std::fs::read_to_string(&file).unwrap_or_default();
        match changes(&stored, &made) {
            Some(_) if write => std::fs::write(&file, made).expect("the outline cannot be written"),
            Some(changes) => {
                println!(
                    "the public API of crates/{name} is not that of crates/{name}/tests/public_api.txt:\n{changes}"
                );
                code = ExitCode::FAILURE;
            }
            None => {}
        }
    }
    if code == ExitCode::FAILURE {
        println!("if the change is intended, run `make public-api` and commit the files");
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outline_has_what_is_public_and_nothing_else() {
        let source = r#"
            mod inner {
                /// Documented.
                #[derive(Debug)]
                pub struct Shown { pub a: u8, hidden: u8 }
                pub(crate) struct Internal;
                impl Shown { pub fn get(&self) -> u8 { self.hidden } fn private(&self) {} }
                impl Private for Shown {}
                impl Clone for Shown { fn clone(&self) -> Self { Self { a: self.a, hidden: 0 } } }
                trait Private {}
            }
            macro_rules! fields { ($then:ident) => { $then! { /** Documented. */ first: u8 } }; }
            macro_rules! made { ($name:ident: $ty:ty) => { pub struct Made { pub $name: $ty } }; }
            macro_rules! unseen { () => { pub(super) struct Internal; }; }
            fields!(made);
            unseen!();
            pub use inner::Shown;
            pub const LIMIT: usize = 3;
            #[doc(hidden)]
            pub mod testing { pub fn tested() {} }
            #[cfg(test)]
            pub mod tests { pub fn test() {} }
        "#;
        let expected = "pub use inner::Shown;
fields!(made);
macro_rules! fields {
    ($then:ident) => {
        $then ! { first : u8 }
    };
}
pub const LIMIT: usize = _;
mod inner {
    #[derive(Debug)]
    pub struct Shown {
        pub a: u8,
    }
    impl Clone for Shown {}
    impl Shown {
        pub fn get(&self) -> u8 {}
    }
}
";
        assert_eq!(outline(syn::parse_file(source).unwrap().items), expected);
    }

    #[test]
    fn changes_name_the_lines() {
        assert_eq!(changes("a\nb\n", "a\nb\n"), None);
        assert_eq!(changes("a\nb\n", "b\nc\n").unwrap(), "- a\n+ c\n");
        assert_eq!(changes("a\nb\n", "b\na\n").unwrap(), "");
    }
}
